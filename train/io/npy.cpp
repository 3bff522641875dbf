#include "fovea/train/io/npy.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "autograd/base/fail.h"
#include "fovea/autograd/ops.h"
#include "train/io/crc.h"
#include "train/io/file.h"
#include "train/io/little_endian.h"

namespace fovea {
namespace {

std::string u16(std::uint64_t value) { return detail::little_endian(static_cast<std::uint16_t>(value)); }
std::string u32(std::uint64_t value) { return detail::little_endian(static_cast<std::uint32_t>(value)); }

// --- NPY -------------------------------------------------------------------------------------------------

std::string npy_header(const Tensor& x) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                 x.dtype() == f32 ? "<f4" : "<f8", to_string(x.shape()));
  constexpr std::size_t before = 10, alignment = 64;  // magic, version and length come before the text
  const std::size_t total = (before + text.size() + 1 + alignment - 1) / alignment * alignment;
  text.resize(total - before - 1, ' ');
  text += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + u16(text.size()) + text;
}

std::span<const std::byte> elements_of(const Tensor& x) {
  std::span<const std::byte> bytes;
  dispatch(x.dtype(), [&]<class T>() {
    bytes = std::as_bytes(std::span(x.data<T>(), static_cast<std::size_t>(x.numel())));
  });
  return bytes;
}

// --- ZIP (PKWARE's APPNOTE 6.3, sections 4.3.7 to 4.3.16) -------------------------------------------------

constexpr std::uint64_t largest_zip = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t most_members = std::numeric_limits<std::uint16_t>::max();
constexpr std::size_t longest_name = 65'000;
constexpr int local_signature = 0x04034b50;

// A tensor as a member of the archive, not compressed.
struct ZipMember {
  std::string name;
  std::string header;
  Tensor value;              // contiguous
  std::uint64_t offset = 0;  // where its local header begins

  std::uint64_t size() const { return header.size() + elements_of(value).size(); }
};

// The fields that a member's local header and its entry in the central directory have in common.
std::string common_fields(const ZipMember& member, std::uint32_t crc) {
  constexpr int version = 20, utf8_name = 1 << 11, stored = 0;
  // A fixed date gives the same bytes for the same tensors.
  constexpr int midnight = 0, first_of_1980 = 1 << 5 | 1;
  constexpr int no_extra_field = 0;
  return u16(version) + u16(utf8_name) + u16(stored) + u16(midnight) + u16(first_of_1980) + u32(crc) +
         u32(member.size()) + u32(member.size()) + u16(member.name.size()) + u16(no_extra_field);
}

std::string directory_entry(const ZipMember& member, std::uint32_t crc) {
  constexpr int signature = 0x02014b50, made_by_version = 20, no_comment = 0, first_disk = 0;
  constexpr int internal_attributes = 0, external_attributes = 0;
  return u32(signature) + u16(made_by_version) + common_fields(member, crc) + u16(no_comment) +
         u16(first_disk) + u16(internal_attributes) + u32(external_attributes) + u32(member.offset) +
         member.name;
}

std::string end_record(std::size_t members, std::size_t directory_size, std::uint64_t directory_begin) {
  constexpr int signature = 0x06054b50, this_disk = 0, disk_of_directory = 0, no_comment = 0;
  return u32(signature) + u16(this_disk) + u16(disk_of_directory) + u16(members) + u16(members) +
         u32(directory_size) + u32(directory_begin) + u16(no_comment);
}

std::vector<ZipMember> members_of(const std::vector<NamedTensor>& tensors) {
  std::vector<ZipMember> members;
  std::set<std::string_view> names;
  std::uint64_t archive = 22;  // bytes; the end record has 22
  constexpr std::uint64_t local_header = 30, directory_header = 46;
  for (const auto& [name, tensor] : tensors) {
    if (name.empty() || name.size() > longest_name) {
      fail<ValueError>("[save_npz] a name has {} bytes: names must have 1 to {}", name.size(), longest_name);
    }
    if (!names.insert(name).second) fail<ValueError>("[save_npz] the name '{}' is in the list twice", name);
    ZipMember member{name + ".npy", npy_header(tensor), contiguous(tensor.detach())};
    archive += local_header + directory_header + 2 * member.name.size() + member.size();
    members.push_back(std::move(member));
  }
  if (archive >= largest_zip || members.size() >= most_members) {
    fail<ValueError>(
        "[save_npz] {} tensors with {} bytes are more than a ZIP archive can hold: write several archives, "
        "or use save_safetensors",
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
        detail::crc32(elements_of(member.value), detail::crc32(std::as_bytes(std::span(member.header))));
    write_text(u32(local_signature) + common_fields(member, crc) + member.name + member.header);
    write(elements_of(member.value));
    directory += directory_entry(member, crc);
  }
  const std::uint64_t directory_begin = written;
  write_text(directory);
  write_text(end_record(members.size(), directory.size(), directory_begin));
  file.commit();
}

}  // namespace fovea
