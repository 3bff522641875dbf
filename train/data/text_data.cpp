#include "fovea/train/data/text_data.h"

#include <algorithm>

#include "autograd/base/fail.h"
#include "train/data/split_size.h"
#include "train/io/file.h"

namespace fovea {
namespace {

// The number of rows of T predictions in the data. The last row may be shorter.
std::int64_t rows_of(const char* name, const TokenData& data, const Blocks& blocks) {
  if (blocks.batch < 1 || blocks.context < 1) {
    fail<ValueError>("[{}] a batch of {} blocks of {} tokens is empty: both must be at least 1", name,
                     blocks.batch, blocks.context);
  }
  const std::int64_t predicted = data.size() - 1;
  if (predicted < blocks.context) {
    fail<ValueError>(
        "[{}] a context of {} tokens and the next token need {}, but the data has {}: take a longer "
        "text or a shorter context",
        name, blocks.context, blocks.context + 1, data.size());
  }
  return (predicted + blocks.context - 1) / blocks.context;
}

std::vector<std::int64_t> read(const TokenData& data, std::int64_t begin, std::int64_t count) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  data.read(begin, ids);
  return ids;
}

}  // namespace

std::string read_text(const std::filesystem::path& path) {
  std::string text = detail::read_file("read_text", path);
  if (text.empty()) fail<FileError>("[read_text] '{}' is empty", path.string());
  return text;
}

Split<TokenData> split(const TokenData& data, double validation) {
  const std::int64_t end = data.size() - detail::validation_size("ids", data.size(), validation);
  return {data.slice(0, end), data.slice(end, data.size())};
}

Batch random_batch(const TokenData& data, const Blocks& blocks, Rng& rng) {
  rows_of("random_batch", data, blocks);
  std::vector<std::vector<std::int64_t>> rows;
  for (std::int64_t b = 0; b < blocks.batch; ++b) {
    rows.push_back(read(data, rng.uniform_int(data.size() - blocks.context), blocks.context + 1));
  }
  return next_token_batch(rows, 0);
}

std::int64_t batch_count(const TokenData& data, const Blocks& blocks) {
  return (rows_of("batch_count", data, blocks) - 1) / blocks.batch + 1;
}

Batch batch_at(const TokenData& data, const Blocks& blocks, std::int64_t index) {
  const std::int64_t all = rows_of("batch_at", data, blocks);
  const std::int64_t batches = batch_count(data, blocks);
  if (index < 0 || index >= batches) {
    fail<IndexError>("[batch_at] batch {} is outside the {} batches of the data", index, batches);
  }
  std::vector<std::vector<std::int64_t>> rows;
  const std::int64_t end = std::min((index + 1) * blocks.batch, all);
  for (std::int64_t row = index * blocks.batch; row < end; ++row) {
    const std::int64_t begin = row * blocks.context;
    rows.push_back(read(data, begin, std::min(blocks.context + 1, data.size() - begin)));
  }
  return next_token_batch(rows, 0, ignored_target);
}

}  // namespace fovea
