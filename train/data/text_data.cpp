#include "fovea/train/data/text_data.h"

#include <algorithm>

#include "autograd/base/fail.h"
#include "train/io/file.h"
#include "train/data/split_size.h"

namespace fovea {
namespace {

// How many rows of T predictions the data has, the last one perhaps a shorter one.
std::int64_t rows_of(const char* name, const TokenData& data, const Crops& crops) {
  if (crops.batch < 1 || crops.context < 1) {
    fail<ValueError>("[{}] a batch of {} crops of {} tokens: at least 1 each", name, crops.batch,
                     crops.context);
  }
  const std::int64_t predicted = data.size() - 1;
  if (predicted < crops.context) {
    fail<ValueError>(
        "[{}] a context of {} tokens and the one after it need {}, and the data has {}: take a longer text "
        "or a "
        "shorter context",
        name, crops.context, crops.context + 1, data.size());
  }
  return (predicted + crops.context - 1) / crops.context;
}

std::vector<std::int64_t> read(const TokenData& data, std::int64_t begin, std::int64_t count) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  data.read(begin, ids);
  return ids;
}

}  // namespace

std::string read_text(const std::filesystem::path& path) {
  const detail::MappedFile file("read_text", path);
  if (file.bytes().empty()) fail<FileError>("[read_text] '{}' is empty", path.string());
  return std::string(file.text());
}

Split<TokenData> split(const TokenData& data, double validation) {
  const std::int64_t end = data.size() - detail::validation_size("ids", data.size(), validation);
  return {data.slice(0, end), data.slice(end, data.size())};
}

Batch random_batch(const TokenData& data, const Crops& crops, Rng& rng) {
  rows_of("random_batch", data, crops);
  std::vector<std::vector<std::int64_t>> rows;
  for (std::int64_t b = 0; b < crops.batch; ++b) {
    rows.push_back(read(data, rng.below(data.size() - crops.context), crops.context + 1));
  }
  return next_token_batch(rows, 0);
}

std::int64_t batch_count(const TokenData& data, const Crops& crops) {
  return (rows_of("batch_count", data, crops) + crops.batch - 1) / crops.batch;
}

Batch batch_at(const TokenData& data, const Crops& crops, std::int64_t index) {
  const std::int64_t all = rows_of("batch_at", data, crops);
  const std::int64_t batches = batch_count(data, crops);
  if (index < 0 || index >= batches) {
    fail<IndexError>("[batch_at] batch {} is outside the {} there are", index, batches);
  }
  std::vector<std::vector<std::int64_t>> rows;
  const std::int64_t end = std::min((index + 1) * crops.batch, all);
  for (std::int64_t row = index * crops.batch; row < end; ++row) {
    const std::int64_t begin = row * crops.context;
    rows.push_back(read(data, begin, std::min(crops.context + 1, data.size() - begin)));
  }
  return next_token_batch(rows, 0, ignored_target);
}

}  // namespace fovea
