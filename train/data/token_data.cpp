#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "autograd/base/fail.h"
#include "fovea/train/data/text_data.h"
#include "train/io/file.h"
#include "train/io/little_endian.h"

namespace fovea {
namespace {

constexpr std::int64_t most_of_16_bits = std::int64_t{1} << 16, most_of_32_bits = std::int64_t{1} << 32;
constexpr std::int64_t ids_at_once = 1 << 20;  // that are in memory while a file is copied

// The first bytes of a token file, which text_data.h documents.
struct Header {
  std::array<char, 8> magic{'F', 'O', 'V', 'E', 'A', 'I', 'D', '1'};
  std::uint32_t width = 0;
  std::uint32_t zero = 0;
  std::uint64_t vocabulary = 0;
  std::uint64_t count = 0;
};
static_assert(sizeof(Header) == 32);

template <class T>
void widen(const std::byte* from, std::span<std::int64_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    T id = 0;
    std::memcpy(&id, from + i * sizeof(T), sizeof(T));
    to[i] = id;
  }
}

template <class T>
std::vector<std::byte> narrow(std::span<const std::int64_t> ids) {
  std::vector<std::byte> bytes(ids.size() * sizeof(T));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<T>(ids[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &id, sizeof(T));
  }
  return bytes;
}

void check_vocabulary(const char* function, std::int64_t vocabulary, int bits) {
  const std::int64_t most = bits == 16 ? most_of_16_bits : most_of_32_bits;
  if (vocabulary < 1 || vocabulary > most) {
    fail<ValueError>(
        "[{}] the vocabulary has {} tokens: there is at least 1, and ids of {} bits tell {} apart", function,
        vocabulary, bits, most);
  }
}

}  // namespace

// Ids in a file, which are read when they are asked for, or in memory in the same form.
struct TokenData::Storage {
  std::optional<detail::InputFile> file;
  std::uint64_t header = 0;       // the bytes of the file before the ids
  std::vector<std::byte> memory;  // where there is no file
  std::string name;
  std::size_t width = 2;
  std::int64_t vocabulary = 0;

  std::uint64_t bytes() const { return file ? file->size() - header : memory.size(); }
  std::int64_t count() const { return static_cast<std::int64_t>(bytes() / width); }
  std::vector<std::byte> part(std::int64_t begin, std::int64_t size) const {
    const auto first = static_cast<std::size_t>(begin) * width,
               length = static_cast<std::size_t>(size) * width;
    if (!file)
      return {memory.begin() + static_cast<std::ptrdiff_t>(first),
              memory.begin() + static_cast<std::ptrdiff_t>(first + length)};
    std::vector<std::byte> read(length);
    file->read(header + first, read);
    return read;
  }

  static std::shared_ptr<Storage> open(const char* function, const std::filesystem::path& path) {
    auto storage = std::make_shared<Storage>();
    storage->file.emplace(function, path);
    storage->name = path.string();
    if (storage->bytes() == 0) fail<FileError>("[{}] '{}' is empty", function, storage->name);
    return storage;
  }
};

TokenData::TokenData(std::shared_ptr<const Storage> storage, std::int64_t begin, std::int64_t size)
    : storage_(std::move(storage)), begin_(begin), size_(size) {}

TokenData::TokenData(std::span<const std::int64_t> ids, std::int64_t vocabulary)
    : size_(static_cast<std::int64_t>(ids.size())) {
  check_vocabulary("TokenData", vocabulary, 32);
  for (const std::int64_t& id : ids) {
    if (id < 0 || id >= vocabulary) {
      fail<IndexError>("[TokenData] id {} at position {} is outside the vocabulary of {}", id,
                       &id - ids.data(), vocabulary);
    }
  }
  auto storage = std::make_shared<Storage>();
  storage->vocabulary = vocabulary;
  storage->width = vocabulary <= most_of_16_bits ? 2 : 4;
  storage->memory = storage->width == 2 ? narrow<std::uint16_t>(ids) : narrow<std::uint32_t>(ids);
  storage_ = std::move(storage);
}

TokenData TokenData::open(const std::filesystem::path& path) {
  const auto storage = Storage::open("TokenData::open", path);
  const auto refuse = [&](const std::string& found) {
    fail<FileError>("[TokenData::open] '{}' is not a token file: {}", storage->name, found);
  };
  Header header;
  const std::array<char, 8> magic = header.magic;
  if (storage->bytes() < sizeof(header)) {
    refuse(fmt::format("it has {} bytes, but a header has {}", storage->bytes(), sizeof(header)));
  }
  storage->file->read(0, std::as_writable_bytes(std::span(&header, 1)));
  if (header.magic != magic) {
    refuse(
        "it does not begin with FOVEAID1; read_text reads a text, and open_raw a file of ids without header");
  }
  const std::uint64_t most = header.width == 2 ? most_of_16_bits : most_of_32_bits;
  if ((header.width != 2 && header.width != 4) || header.zero != 0 || header.vocabulary == 0 ||
      header.vocabulary > most) {
    refuse(fmt::format("its header says {} bytes per id and a vocabulary of {}", header.width,
                       header.vocabulary));
  }
  storage->header = sizeof(header);
  if (storage->bytes() % header.width != 0 || storage->bytes() / header.width != header.count) {
    refuse(fmt::format("its header says {} ids of {} bytes, but {} bytes follow; was it written to the end?",
                       header.count, header.width, storage->bytes()));
  }
  storage->width = header.width;
  storage->vocabulary = static_cast<std::int64_t>(header.vocabulary);
  const std::int64_t count = storage->count();
  return {storage, 0, count};
}

TokenData TokenData::open_raw(const std::filesystem::path& path, std::int64_t vocabulary) {
  check_vocabulary("TokenData::open_raw", vocabulary, 16);
  const auto storage = Storage::open("TokenData::open_raw", path);
  if (storage->bytes() % 2 != 0) {
    fail<FileError>("[TokenData::open_raw] '{}' has {} bytes, an odd number: an id of 16 bits has 2",
                    storage->name, storage->bytes());
  }
  storage->vocabulary = vocabulary;
  const std::int64_t count = storage->count();
  return {storage, 0, count};
}

void TokenData::save(const std::filesystem::path& path) const {
  Header header;
  header.width = static_cast<std::uint32_t>(storage_->width);
  header.vocabulary = static_cast<std::uint64_t>(vocabulary());
  header.count = static_cast<std::uint64_t>(size_);
  detail::AtomicFile file("TokenData::save", path);
  file.write(std::as_bytes(std::span(&header, 1)));
  for (std::int64_t at = 0; at < size_; at += ids_at_once) {
    file.write(storage_->part(begin_ + at, std::min(ids_at_once, size_ - at)));
  }
  file.commit();
}

std::int64_t TokenData::vocabulary() const { return storage_->vocabulary; }

void TokenData::read(std::int64_t begin, std::span<std::int64_t> ids) const {
  const auto count = static_cast<std::int64_t>(ids.size());
  if (begin < 0 || begin > size_ || count > size_ - begin) {
    fail<IndexError>("[TokenData::read] {} ids from position {} on were asked for, but the data has {}",
                     count, begin, size_);
  }
  const std::vector<std::byte> part = storage_->part(begin_ + begin, count);
  storage_->width == 2 ? widen<std::uint16_t>(part.data(), ids) : widen<std::uint32_t>(part.data(), ids);
  for (const std::int64_t& id : ids) {
    // Ids in memory were checked when the data was made; those of a file are checked as they are read.
    if (id >= vocabulary()) {
      fail<FileError>("[TokenData::read] id {} at position {} of '{}' is outside the vocabulary of {}", id,
                      begin_ + begin + (&id - ids.data()), storage_->name, vocabulary());
    }
  }
}

TokenData TokenData::slice(std::int64_t begin, std::int64_t end) const {
  if (begin < 0 || begin > end || end > size_) {
    fail<IndexError>("[TokenData::slice] [{}, {}) is not a range within the {} ids", begin, end, size_);
  }
  return {storage_, begin_ + begin, end - begin};
}

}  // namespace fovea
