#include "fovea/train/io/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "autograd/base/fail.h"
#include "fovea/autograd/ops.h"
#include "train/io/file.h"

namespace fovea {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie in memory");

// Little-endian fields, one after the other.
class Fields {
 public:
  Fields& u16(std::uint64_t value) { return add(value, 2); }
  Fields& u32(std::uint64_t value) { return add(value, 4); }
  const std::string& bytes() const { return bytes_; }

 private:
  Fields& add(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xffU);
    return *this;
  }
  std::string bytes_;
};

// --- NPY ---

std::string npy_header(const Tensor& x) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                 x.dtype() == f32 ? "<f4" : "<f8", to_string(x.shape()));
  constexpr std::size_t before = 10, alignment = 64;  // magic, version and length come before the text
  const std::size_t total = (before + text.size() + 1 + alignment - 1) / alignment * alignment;
  text.resize(total - before - 1, ' ');
  text += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + Fields().u16(text.size()).bytes() + text;
}

std::span<const std::byte> elements_of(const Tensor& x) {
  std::span<const std::byte> bytes;
  dispatch(x.dtype(), [&]<class T>() {
    bytes = std::as_bytes(std::span(x.data<T>(), static_cast<std::size_t>(x.numel())));
  });
  return bytes;
}

// --- ZIP (PKWARE's APPNOTE 6.3, sections 4.3.7 to 4.3.16) ---

constexpr std::uint64_t largest_zip = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t most_members = std::numeric_limits<std::uint16_t>::max();
constexpr std::size_t longest_name = 65'000;

// The reflected polynomial 0x04c11db7, a byte at a time.
constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1U) ? c >> 1U ^ 0xedb88320U : c >> 1U;
    table[i] = c;
  }
  return table;
}();

std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes) {
  crc = ~crc;
  for (const std::byte b : bytes)
    crc = crc >> 8U ^ crc_table[(crc ^ std::to_integer<std::uint32_t>(b)) & 0xffU];
  return ~crc;
}

/// One tensor as a member of the archive, stored as it is.
struct ZipMember {
  std::string name;
  std::string header;
  Tensor value;              // row-major
  std::uint64_t offset = 0;  // of its local header

  std::uint64_t size() const { return header.size() + elements_of(value).size(); }
};

// What the local header and the central directory say in the same order.
void add_common_fields(Fields& fields, const ZipMember& member, std::uint32_t crc) {
  constexpr int version = 20, utf8_name = 1 << 11, stored = 0;
  constexpr int midnight = 0, first_of_1980 = 1 << 5 | 1;  // the same bytes for the same tensors
  fields.u16(version).u16(utf8_name).u16(stored).u16(midnight).u16(first_of_1980);
  fields.u32(crc).u32(member.size()).u32(member.size()).u16(member.name.size()).u16(0);
}

std::string directory_entry(const ZipMember& member, std::uint32_t crc) {
  Fields fields;
  fields.u32(0x02014b50).u16(20);
  add_common_fields(fields, member, crc);
  fields.u16(0).u16(0).u16(0).u32(0).u32(member.offset);
  return fields.bytes() + member.name;
}

std::vector<ZipMember> members_of(const std::vector<NamedTensor>& tensors) {
  std::vector<ZipMember> members;
  std::set<std::string_view> names;
  std::uint64_t archive = 22;  // the end record
  constexpr std::uint64_t local_header = 30, directory_header = 46;
  for (const auto& [name, tensor] : tensors) {
    if (name.empty() || name.size() > longest_name) {
      fail<ValueError>("[save_npz] a name has {} bytes: it must have 1 to {}", name.size(), longest_name);
    }
    if (!names.insert(name).second) fail<ValueError>("[save_npz] '{}' is in the list twice", name);
    ZipMember member{name + ".npy", npy_header(tensor), contiguous(tensor.detach())};
    archive += local_header + directory_header + 2 * member.name.size() + member.size();
    members.push_back(std::move(member));
  }
  if (archive >= largest_zip || members.size() >= most_members) {
    fail<ValueError>(
        "[save_npz] {} tensors and {} bytes are more than an archive can hold: use several, or "
        "save_safetensors",
        members.size(), archive);
  }
  return members;
}

}  // namespace

void save_npy(const std::filesystem::path& path, const Tensor& x) {
  const Tensor row_major = contiguous(x.detach());
  detail::AtomicFile file("save_npy", path);
  file.write(npy_header(x));
  file.write(elements_of(row_major));
  file.commit();
}

void save_npz(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors) {
  std::vector<ZipMember> members = members_of(tensors);
  detail::AtomicFile file("save_npz", path);
  std::uint64_t written = 0;
  const auto write = [&](std::span<const std::byte> bytes) {
    file.write(bytes);
    written += bytes.size();
  };
  const auto write_text = [&](const std::string& text) { write(std::as_bytes(std::span(text))); };
  std::string directory;
  for (ZipMember& member : members) {
    member.offset = written;
    const std::uint32_t crc =
        crc32(crc32(0, std::as_bytes(std::span(member.header))), elements_of(member.value));
    Fields fields;
    fields.u32(0x04034b50);
    add_common_fields(fields, member, crc);
    write_text(fields.bytes() + member.name + member.header);
    write(elements_of(member.value));
    directory += directory_entry(member, crc);
  }
  const std::uint64_t directory_begin = written;
  write_text(directory);
  Fields end;
  end.u32(0x06054b50).u16(0).u16(0).u16(members.size()).u16(members.size());
  end.u32(directory.size()).u32(directory_begin).u16(0);
  write_text(end.bytes());
  file.commit();
}

}  // namespace fovea
