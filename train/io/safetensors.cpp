#include "fovea/train/io/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <set>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "fovea/autograd/ops.h"
#include "train/io/crc.h"
#include "train/io/file.h"
#include "train/io/little_endian.h"
#include "train/io/safetensors_header.h"

namespace fovea {
namespace {

constexpr std::uint64_t length_bytes = 8;

// Bytes that can be read at any offset, from a file or from memory.
struct Source {
  std::string what;  // "[load_safetensors] 'model.safetensors'"
  std::uint64_t size;
  std::function<void(std::uint64_t offset, std::span<std::byte> to)> read;
};

Source source_of(const std::string& function, const std::filesystem::path& path,
                 const detail::InputFile& file) {
  return {fmt::format("[{}] '{}'", function, path.string()), file.size(),
          [&file](std::uint64_t offset, std::span<std::byte> to) { file.read(offset, to); }};
}

SafetensorsHeader read_header(const Source& source) {
  if (source.size < length_bytes) {
    fail<FileError>("{}: {} bytes are no safetensors file, which begins with 8 bytes for its header's length",
                    source.what, source.size);
  }
  std::uint64_t length = 0;
  source.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > source.size - length_bytes || length > detail::largest_header) {
    fail<FileError>(
        "{}: its first 8 bytes say that the header has {} bytes, but {}: is it a whole safetensors file?",
        source.what, length,
        length > detail::largest_header ? "at most 100,000,000 are allowed"
                                        : fmt::format("only {} follow", source.size - length_bytes));
  }
  std::string text(length, '\0');
  source.read(length_bytes, std::as_writable_bytes(std::span(text)));
  const std::uint64_t data_begin = length_bytes + length;
  SafetensorsHeader header = detail::parse_header(source.what, text, source.size - data_begin);
  header.data_begin = data_begin;
  return header;
}

// f16 has a sign bit, 5 bits of exponent and 10 of fraction. Its subnormal numbers are normal in f32.
float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t rest = bits & 0x7fffU;
  if (rest >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | (rest & 0x3ffU) << 13U);
  // The exponent's bias is 15 in f16 and 127 in f32, so the bits moved into f32's place are 2^112 too small.
  const float magnitude = std::bit_cast<float>(rest << 13U) * 0x1p112F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

// bf16 has the upper 16 bits of an f32.
float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }

// The bytes of a tensor, read one after another, and their checksum.
class TensorBytes {
 public:
  TensorBytes(const Source& source, std::uint64_t offset) : source_(source), offset_(offset) {}

  void read(std::span<std::byte> to) {
    source_.read(offset_, to);
    offset_ += to.size();
    checksum_ = detail::crc32(to, checksum_);
  }
  std::uint32_t checksum() const { return checksum_; }

 private:
  const Source& source_;
  std::uint64_t offset_;
  std::uint32_t checksum_ = 0;
};

void read_halves(TensorBytes& bytes, float (*convert)(std::uint16_t), std::span<float> to) {
  std::array<std::uint16_t, 4096> part{};
  while (!to.empty()) {
    const std::size_t n = std::min(part.size(), to.size());
    bytes.read(std::as_writable_bytes(std::span(part).first(n)));
    std::transform(part.begin(), part.begin() + n, to.begin(), convert);
    to = to.subspan(n);
  }
}

Tensor read_tensor(const Source& source, const SafetensorsEntry& entry, std::uint64_t data_begin) {
  Tensor value = empty(entry.shape, entry.dtype == "F64" ? f64 : f32);
  TensorBytes bytes(source, data_begin + entry.begin);
  dispatch(value.dtype(), [&]<class T>() {
    const std::span<T> elements(value.mutable_data<T>(), static_cast<std::size_t>(value.numel()));
    if constexpr (std::is_same_v<T, float>) {
      if (entry.dtype == "F16") return read_halves(bytes, from_f16, elements);
      if (entry.dtype == "BF16") return read_halves(bytes, from_bf16, elements);
    }
    bytes.read(std::as_writable_bytes(elements));
  });
  if (entry.crc32 && bytes.checksum() != *entry.crc32) {
    fail<FileError>(
        "{}: the elements of tensor {} do not match their checksum: the file is damaged, or another program "
        "has "
        "changed it and kept the metadata key {}",
        source.what, detail::in_quotes(entry.name), detail::checksums_key);
  }
  return value;
}

bool has_tensors_of(const std::string& dtype) {
  return dtype == "F32" || dtype == "F64" || dtype == "F16" || dtype == "BF16";
}

SafetensorsFile load_from(const Source& source, const LoadSafetensorsOptions& options) {
  SafetensorsHeader header = read_header(source);
  SafetensorsFile file{.metadata = std::move(header.metadata)};
  file.state.settings = std::move(header.settings);
  const auto is_other = [](const SafetensorsEntry& entry) { return !has_tensors_of(entry.dtype); };
  const auto other = std::ranges::find_if(header.entries, is_other);
  if (other != header.entries.end() && !options.skip_other_dtypes) {
    fail<FileError>(
        "{}: tensor {} is {}, but only F32, F64, F16 and BF16 can be loaded: pass "
        "{{.skip_other_dtypes = true}} to skip it",
        source.what, detail::in_quotes(other->name), other->dtype);
  }
  std::set<std::string_view> skipped;
  for (const SafetensorsEntry& entry : header.entries) {
    if (is_other(entry)) {
      skipped.insert(entry.name);
      file.skipped.push_back(entry.name);
    } else {
      file.state.tensors.push_back({entry.name, read_tensor(source, entry, header.data_begin)});
    }
  }
  for (Alias& alias : header.aliases) {
    if (skipped.contains(alias.original)) {
      file.skipped.push_back(alias.name);
    } else {
      file.state.aliases.push_back(std::move(alias));
    }
  }
  return file;
}

// The wider dtype comes first, so that every element is aligned to its size in the file.
std::vector<NamedTensor> in_file_order(const State& state) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : state.tensors) tensors.push_back({name, contiguous(tensor.detach())});
  std::stable_partition(tensors.begin(), tensors.end(),
                        [](const NamedTensor& named) { return named.tensor.dtype() == f64; });
  return tensors;
}

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return dispatch(tensor.dtype(), [&]<class T>() {
    return std::as_bytes(std::span(tensor.data<T>(), static_cast<std::size_t>(tensor.numel())));
  });
}

}  // namespace

void save_safetensors(const std::filesystem::path& path, const State& state, const Metadata& metadata) {
  const std::vector<NamedTensor> tensors = in_file_order(state);
  SafetensorsHeader header{.aliases = state.aliases, .settings = state.settings, .metadata = metadata};
  std::uint64_t end = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::uint64_t begin = end;
    end += static_cast<std::uint64_t>(tensor.numel()) * size_of(tensor.dtype());
    header.entries.push_back({name, tensor.dtype() == f64 ? "F64" : "F32", tensor.shape(), begin, end,
                              detail::crc32(bytes_of(tensor))});
  }
  const std::string text = detail::format_header(header);
  const std::uint64_t length = text.size();
  if (length > detail::largest_header) {
    fail<ValueError>(
        "[save_safetensors] the names and metadata take {} bytes: at most 100,000,000 are allowed", length);
  }
  detail::AtomicFile file("save_safetensors", path);
  file.write(detail::little_endian(length));
  file.write(text);
  for (const NamedTensor& named : tensors) file.write(bytes_of(named.tensor));
  file.commit();
}

SafetensorsFile load_safetensors(const std::filesystem::path& path, const LoadSafetensorsOptions& options) {
  const detail::InputFile file("load_safetensors", path);
  return load_from(source_of("load_safetensors", path, file), options);
}

SafetensorsFile load_safetensors(std::span<const std::byte> bytes, const LoadSafetensorsOptions& options) {
  const auto read = [&](std::uint64_t offset, std::span<std::byte> to) {
    if (!to.empty()) std::memcpy(to.data(), bytes.data() + offset, to.size());
  };
  return load_from({fmt::format("[load_safetensors] {} bytes in memory", bytes.size()), bytes.size(), read},
                   options);
}

SafetensorsHeader read_safetensors_header(const std::filesystem::path& path) {
  const detail::InputFile file("read_safetensors_header", path);
  return read_header(source_of("read_safetensors_header", path, file));
}

}  // namespace fovea
