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
#include "fovea/train/tokenizers/tokenizer.h"

/// What language models train on: texts as rows of ids, in memory or in files, and batches of them.
///
/// A batch is a function of the data and either an Rng or its number, so a run goes on with the same batches
/// from a few words of state: those of the Rng, or the number.
namespace fovea {

/// The bytes of a text file.
/// Throws: FileError if it can't be read, is no regular file (a folder, a pipe) or is empty.
FOVEA_API std::string read_text(const std::filesystem::path& path);

/// Part of the data to train on, and part to measure with.
template <class Data>
struct Split {
  Data train;
  Data validation;
};

// A text as one row of ids -----------------------------------------------------------------------------

/// A row of token ids, in memory or mapped from a file.
///
/// A token file is little-endian: the 8 bytes "FOVEAID1", bytes per id (u32: 2 where the vocabulary has up to
/// 65,536 tokens, else 4), 4 zero bytes, V (u64), the number of ids (u64), then the ids. It is as good as its
/// size says: one that was written in part is refused.
///
/// Copies and slices share the ids. A mapped file must not be changed meanwhile.
/// Threads: the data is not changed once it is made; any number of threads may use it.
class FOVEA_API TokenData {
 public:
  /// Throws: IndexError for an id outside [0, vocabulary), with its position.
  TokenData(std::span<const std::int64_t> ids, std::int64_t vocabulary);
  /// The ids of a text. Throws: as the tokenizer's `encode`.
  TokenData(std::string_view text, const Tokenizer& tokenizer)
      : TokenData(tokenizer.encode(text), tokenizer.size()) {}

  /// Maps a token file. Throws: FileError if it can't be read, is empty or is no whole token file.
  static TokenData open(const std::filesystem::path& path);
  /// Maps a file that has nothing but ids of 16 bits, little-endian, such as nanoGPT's train.bin.
  /// Throws: FileError if it can't be read, is empty or has an odd number of bytes.
  static TokenData open_raw(const std::filesystem::path& path, std::int64_t vocabulary);
  /// Writes a token file. Throws: FileError.
  void save(const std::filesystem::path& path) const;

  std::int64_t size() const { return size_; }
  std::int64_t vocabulary() const;
  /// The ids from a place on, as many as there is room for.
  /// Throws: IndexError if there are fewer; FileError for an id outside the vocabulary, with its position.
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

/// The first part of a row to train on, the last for validation: that fraction, rounded up.
/// Throws: ValueError unless both parts have ids.
FOVEA_API Split<TokenData> split(const TokenData& data, double validation);

struct Blocks {
  std::int64_t batch = 12;    ///< B
  std::int64_t context = 64;  ///< T
};

/// B blocks of T ids, each with the id after it: their places are drawn independently, all equally likely.
/// Shapes: (B, T). Throws: ValueError if B or T is less than 1, or the data has fewer than T + 1 ids.
FOVEA_API Batch random_batch(const TokenData& data, const Blocks& blocks, Rng& rng);
/// How many batches it takes to predict each id of the data once, the first one excepted.
/// Throws: as `random_batch`.
FOVEA_API std::int64_t batch_count(const TokenData& data, const Blocks& blocks);
/// Batch `index` of these. The last one may have fewer rows, and what its last row lacks is `ignored_target`.
/// Throws: as `random_batch`; IndexError for an index outside [0, batch_count).
FOVEA_API Batch batch_at(const TokenData& data, const Blocks& blocks, std::int64_t index);

// A text of lines, each by itself ----------------------------------------------------------------------

/// Lines of a text, such as names. The newline stands before and after each: a model starts from it, and a
/// line that it writes ends with it.
///
/// Threads: the data is not changed once it is made; any number of threads may use it.
class FOVEA_API LineData {
 public:
  /// Empty lines are left out, and the carriage return of a line that ends with CR LF.
  /// Throws: ValueError if there are no lines, or newline is no token; as the tokenizer's `encode`, with the
  /// number of the line.
  LineData(std::string_view text, const Tokenizer& tokenizer);

  std::int64_t size() const { return static_cast<std::int64_t>(lines_.size()); }
  std::int64_t vocabulary() const { return vocabulary_; }
  /// The id of the newline.
  std::int64_t boundary() const { return boundary_; }
  /// T of the longest line: the context that a model needs.
  std::int64_t context() const;
  /// The ids of a line, between two newlines. Throws: IndexError.
  const std::vector<std::int64_t>& line(std::int64_t index) const;
  /// The lines with these numbers. Throws: ValueError if there are none; IndexError.
  LineData select(std::span<const std::int64_t> indices) const;

 private:
  LineData() = default;

  std::vector<std::vector<std::int64_t>> lines_;
  std::int64_t vocabulary_ = 0;
  std::int64_t boundary_ = 0;
};

/// Lines drawn for validation, that fraction of all, rounded up; the others to train on.
/// Throws: ValueError unless both parts have lines.
FOVEA_API Split<LineData> split(const LineData& data, double validation, Rng& rng);

/// Lines drawn independently, all equally likely. A row that is shorter than the longest ends with newlines,
/// and `ignored_target` in the targets.
/// Shapes: (batch, T of the longest). Throws: ValueError if batch < 1.
FOVEA_API Batch random_batch(const LineData& data, std::int64_t batch, Rng& rng);
/// How many batches all lines are. Throws: as `random_batch`.
FOVEA_API std::int64_t batch_count(const LineData& data, std::int64_t batch);
/// Batch `index` of these, in the order of the lines; the last one may have fewer.
/// Throws: as `random_batch`; IndexError for an index outside [0, batch_count).
FOVEA_API Batch batch_at(const LineData& data, std::int64_t batch, std::int64_t index);

}  // namespace fovea
