#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/train/data/batch.h"
#include "fovea/train/tokenizers/clean_text.h"
#include "fovea/train/tokenizers/tokenizer.h"

/// Texts as ids, in memory or in files, and batches of them for language models.
///
/// There are no iterators. A random batch is a function of the data and an Rng, and a batch in order is a
/// function of the data and its number. So a run that resumes needs only the Rng's state, or the number, to
/// go on with the same batches.
namespace fovea {

/// The bytes of a text file. `clean_text` makes them a text that does not depend on the system that saved it.
/// Throws: FileError if the file can't be read, is not a regular file (but a folder or a pipe) or is empty.
FOVEA_API std::string read_text(const std::filesystem::path& path);

/// Data in two parts.
template <class Data>
struct Split {
  Data train;
  Data validation;  ///< kept out of training, to evaluate on
};

// --- A text as one sequence of ids ------------------------------------------------------------------------

/// A sequence of token ids, in memory or in a file, from which each batch is read.
///
/// A token file is little-endian: the 8 bytes "FOVEAID1", the bytes per id (u32; 2 if the vocabulary has at
/// most 65,536 tokens, otherwise 4), 4 zero bytes, V (u64), the number of ids (u64), and the ids. A file
/// whose size disagrees with its header, because it was not written to the end, is refused.
///
/// Copies and slices share the ids, and the open file. A file that becomes shorter meanwhile is a FileError.
/// Threads: the data does not change once it is made; any number of threads may use it.
class FOVEA_API TokenData {
 public:
  /// Copies ids. Throws: IndexError, with the position, for an id outside [0, vocabulary); ValueError if the
  /// vocabulary is below 1 or above 2^32.
  TokenData(std::span<const std::int64_t> ids, std::int64_t vocabulary);
  /// Encodes a text. Throws: as the tokenizer's `encode`.
  TokenData(std::string_view text, const Tokenizer& tokenizer)
      : TokenData(tokenizer.encode(text), tokenizer.size()) {}

  /// Opens a token file. Throws: FileError if it can't be read or is not a whole token file.
  static TokenData open(const std::filesystem::path& path);
  /// Opens a file of 16-bit little-endian ids without a header, such as nanoGPT's train.bin.
  /// Throws: FileError if it can't be read, is empty or has an odd number of bytes; ValueError if the
  /// vocabulary is below 1 or above 65,536.
  static TokenData open_raw(const std::filesystem::path& path, std::int64_t vocabulary);
  /// Writes a token file. Throws: FileError if it can't be written.
  void save(const std::filesystem::path& path) const;

  std::int64_t size() const { return size_; }
  std::int64_t vocabulary() const;
  /// Fills `ids` with those from position `begin` on. Throws: IndexError if there are fewer; FileError if the
  /// file can't be read any more, or, with the position, for an id in it that is outside the vocabulary.
  void read(std::int64_t begin, std::span<std::int64_t> ids) const;
  /// The ids in [begin, end). Throws: IndexError.
  TokenData slice(std::int64_t begin, std::int64_t end) const;

 private:
  struct Storage;
  TokenData(std::shared_ptr<const Storage> storage, std::int64_t begin, std::int64_t size);

  std::shared_ptr<const Storage> storage_;
  std::int64_t begin_ = 0;
  std::int64_t size_ = 0;
};

/// Keeps the last ids for validation: this fraction of all, rounded up.
/// Throws: ValueError if one of the two parts would be empty.
FOVEA_API Split<TokenData> split(const TokenData& data, double validation);

/// The size of a batch of blocks. A block is a contiguous part of a sequence of ids.
struct Blocks {
  std::int64_t batch = 12;    ///< B, the number of blocks
  std::int64_t context = 64;  ///< T, the ids of a block
};

/// B blocks of T ids and the next id after each. Their positions are drawn independently and uniformly.
/// Shapes: (B, T). Throws: ValueError if B or T is below 1, or the data has fewer than T + 1 ids.
FOVEA_API Batch random_batch(const TokenData& data, const Blocks& blocks, Rng& rng);
/// The number of batches in which every id of the data but the first is predicted once.
/// Throws: as `random_batch`.
FOVEA_API std::int64_t batch_count(const TokenData& data, const Blocks& blocks);
/// Batch `index` of these. The last batch may have fewer rows, and its last row is padded with
/// `ignored_target` as target. Throws: as `random_batch`; IndexError if index is outside [0, batch_count).
FOVEA_API Batch batch_at(const TokenData& data, const Blocks& blocks, std::int64_t index);

// --- A text as separate lines -----------------------------------------------------------------------------

/// Lines of a text, such as names, each a sequence of its own. The newline stands before and after each line,
/// so a model starts a line from it and ends a line with it.
///
/// Threads: the data does not change once it is made; any number of threads may use it.
class FOVEA_API LineData {
 public:
  /// Encodes the lines of a text, which is cleaned by `clean_text` first. Leaves out empty lines.
  /// Throws: ValueError if there are no lines or the tokenizer has no newline; as `clean_text`, and as the
  /// tokenizer's `encode`, with the number of the line.
  LineData(std::string_view text, const Tokenizer& tokenizer);

  std::int64_t size() const { return static_cast<std::int64_t>(lines_.size()); }
  std::int64_t vocabulary() const { return vocabulary_; }
  /// The id of the newline.
  std::int64_t boundary() const { return boundary_; }
  /// T of the longest line: the context that a model needs.
  std::int64_t context() const;
  /// The ids of a line, with a newline before and after. Throws: IndexError.
  const std::vector<std::int64_t>& line(std::int64_t index) const;
  /// The lines with these numbers. Throws: ValueError if there are none; IndexError.
  LineData select(std::span<const std::int64_t> indices) const;

 private:
  LineData() = default;

  std::vector<std::vector<std::int64_t>> lines_;
  std::int64_t vocabulary_ = 0;
  std::int64_t boundary_ = 0;
};

/// Draws lines for validation: this fraction of all, rounded up.
/// Throws: ValueError if one of the two parts would be empty.
FOVEA_API Split<LineData> split(const LineData& data, double validation, Rng& rng);

/// Lines drawn independently and uniformly. Rows shorter than the longest are padded with newlines in the
/// inputs and `ignored_target` in the targets. Shapes: (batch, T of the longest line). Throws: ValueError if
/// batch < 1.
FOVEA_API Batch random_batch(const LineData& data, std::int64_t batch, Rng& rng);
/// The number of batches in which every line comes once. Throws: as `random_batch`.
FOVEA_API std::int64_t batch_count(const LineData& data, std::int64_t batch);
/// Batch `index` of these, in the order of the lines. The last batch may have fewer lines.
/// Throws: as `random_batch`; IndexError if index is outside [0, batch_count).
FOVEA_API Batch batch_at(const LineData& data, std::int64_t batch, std::int64_t index);

}  // namespace fovea
