#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/shape.h"
#include "fovea/layers/state.h"

/// Files of named tensors in the safetensors format (github.com/huggingface/safetensors, "Format"), which the
/// Python package of that name reads and writes:
///
///   8 bytes     n, the length of the header, little-endian
///   n bytes     the header, JSON padded with spaces at the end:
///                 {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
///                  "__metadata__": {"key": "text", ...}}
///   the rest    the elements, little-endian and row-major; offsets count from the end of the header, and the
///               tensors together cover each byte exactly once
///
/// `save_safetensors(path, state(model))` writes a layer, and `load(model, load_safetensors(path).state)`
/// reads it back. The names of tied tensors are kept as text under the metadata key "fovea.aliases", the
/// layer's settings under "fovea.settings", and checksums under "fovea.crc32": that of the header, in which
/// these eight digits are zeros, and one of each tensor's bytes, in their order in the file. They are CRC-32
/// as in zlib, and find every change of a single bit. A file of another program has none, and loads too.
namespace fovea {

/// Texts by key, which a file keeps beside its tensors.
using Metadata = std::map<std::string, std::string>;

/// Writes a state to a file: f32 as F32, f64 as F64, and a tied tensor once.
///
/// The write is atomic: whenever the program or the machine stops, the path holds either the old file or the
/// whole new one. The file is written under a temporary name in the same folder (".fovea-<16 hex
/// digits>.tmp"), flushed to the disk and renamed; then the folder is flushed. Temporary files that killed
/// programs have left in the folder are removed.
///
/// Threads and processes may save into one folder at the same time. If two save to one path, the last one
/// wins. A symbolic link at the path is replaced, not followed.
///
/// Throws: FileError with the path and the system's reason if the file can't be written, as on a full disk or
/// without permission; an older file at the path is then unchanged, unless the error says that only the flush
/// of the folder failed. ValueError if a tensor's name or a metadata key is empty, reserved, given twice or
/// not UTF-8.
FOVEA_API void save_safetensors(const std::filesystem::path& path, const State& state,
                                const Metadata& metadata = {});

struct SafetensorsFile {
  State state = {};
  Metadata metadata = {};                 ///< without what is part of `state`
  std::vector<std::string> skipped = {};  ///< the tensors that `skip_other_dtypes` left out
};

struct LoadSafetensorsOptions {
  /// Skips tensors whose dtype Fovea does not have (integers, booleans, 8-bit floats), instead of throwing.
  bool skip_other_dtypes = false;
};

/// Reads a file. F32 becomes f32 and F64 becomes f64; F16 and BF16 become f32, which can represent all their
/// values.
///
/// Nothing in the file is trusted. The whole header is checked against the format and the size of the file
/// before memory for any tensor is allocated, so a damaged or hostile file leads to an error and nothing
/// worse.
///
/// Throws: FileError, which says what is wrong and where, if the file can't be read or is not a whole
/// safetensors file. It refuses a header longer than the file or 100 MB; JSON that is invalid, repeats a key
/// or has content that the format does not know; empty names; ranges that overlap, leave gaps or exceed the
/// file; shapes that disagree with their range, overflow or have more than 63 axes; unknown dtypes; and
/// bytes that do not match their checksum.
FOVEA_API SafetensorsFile load_safetensors(const std::filesystem::path& path,
                                           const LoadSafetensorsOptions& options = {});

/// Reads the contents of a file that is already in memory, at any address. Throws: as above.
FOVEA_API SafetensorsFile load_safetensors(std::span<const std::byte> bytes,
                                           const LoadSafetensorsOptions& options = {});

/// A tensor as the header describes it.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  ///< in the format's words: "F32", "BF16", "I64", ...
  Shape shape;
  std::uint64_t begin = 0;                  ///< where its bytes begin, counted from the end of the header
  std::uint64_t end = 0;                    ///< where its bytes end
  std::optional<std::uint32_t> crc32 = {};  ///< the checksum of its bytes, if the file has checksums
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries = {};  ///< in the order of their bytes in the file
  std::vector<Alias> aliases = {};
  Settings settings = {};
  Metadata metadata = {};        ///< without the keys of Fovea's own
  std::uint64_t data_begin = 0;  ///< where the header ends in the file
};

/// Reads and checks the header of a file, which may have tensors of any dtype of the format, without reading
/// elements. Throws: as `load_safetensors`.
FOVEA_API SafetensorsHeader read_safetensors_header(const std::filesystem::path& path);

}  // namespace fovea
