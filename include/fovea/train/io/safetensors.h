#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
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
///   n bytes     JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
///                      "__metadata__": {"key": "text", ...}}, padded at the end with spaces
///   the rest    the elements, little-endian and row-major; offsets count from the end of the header, and
///               together the tensors cover all of it, each byte once
///
/// `save_safetensors(path, state(model))` writes a layer, `load(model, load_safetensors(path).state)` reads
/// it again. The names of tied tensors are kept as text under the metadata key "fovea.aliases".
namespace fovea {

/// Text by key, kept in a file beside its tensors.
using Metadata = std::map<std::string, std::string>;

/// Writes a state to a file, f32 as F32 and f64 as F64; a tied tensor once.
///
/// The file is there as a whole or not at all, whenever the program or the machine stops: it is written under
/// a temporary name in the same folder (".fovea-<16 hex digits>.tmp"), flushed to the disk and renamed; then
/// the folder is flushed. Temporary files that a killed program has left in the folder are removed.
///
/// Threads and processes may save into one folder at the same time; of two that save to one path, the last
/// wins. A symbolic link at the path is replaced, not followed.
///
/// Throws: FileError, with the path and the system's reason, if the file can't be written (a full disk, no
/// permission): an older file at the path is as it was, unless the error says that only the flush of its
/// folder failed. ValueError for a name or metadata key that is empty, reserved, there twice or not UTF-8.
FOVEA_API void save_safetensors(const std::filesystem::path& path, const State& state,
                                const Metadata& metadata = {});

struct SafetensorsFile {
  State state = {};
  Metadata metadata = {};                 ///< without "fovea.aliases", which is in `state`
  std::vector<std::string> skipped = {};  ///< names left out by `skip_other_dtypes`
};

struct LoadSafetensorsOptions {
  /// Leave out tensors of a dtype that Fovea has no tensors of (integers, booleans, 8-bit floats), instead of
  /// an error.
  bool skip_other_dtypes = false;
};

/// Reads a file. F32 and F64 come as they are, F16 and BF16 as f32, which holds all their values.
///
/// Nothing in the file is trusted: all of its header is checked against the format and the size of the file
/// before memory for a tensor is taken, so a damaged or hostile file costs an error and no more.
///
/// Throws: FileError, with the path, what is wrong and where, if the file can't be read or is not a whole
/// safetensors file. These are refused: a header longer than the file or 100 MB; JSON that is not valid, has
/// a key twice or anything the format does not know; empty names; ranges that overlap, leave gaps or leave
/// the file; shapes that disagree with their range, overflow or have more than 64 axes; unknown dtypes.
FOVEA_API SafetensorsFile load_safetensors(const std::filesystem::path& path,
                                           const LoadSafetensorsOptions& options = {});

/// The same for a file that is already in memory, at any address.
FOVEA_API SafetensorsFile load_safetensors(std::span<const std::byte> bytes,
                                           const LoadSafetensorsOptions& options = {});

/// One tensor as the header describes it.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  ///< as the file has it: "F32", "BF16", "I64", ...
  Shape shape;
  std::uint64_t begin = 0;  ///< its bytes, from the end of the header
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries = {};  ///< in the order of their bytes
  std::vector<Alias> aliases = {};
  Metadata metadata = {};        ///< without "fovea.aliases"
  std::uint64_t data_begin = 0;  ///< where the header ends in the file
};

/// Reads and checks what a file holds, of any known dtype, without reading elements.
/// Throws: as load_safetensors.
FOVEA_API SafetensorsHeader read_safetensors_header(const std::filesystem::path& path);

}  // namespace fovea
