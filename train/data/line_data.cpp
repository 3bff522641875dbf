#include <algorithm>
#include <numeric>

#include "autograd/base/fail.h"
#include "fovea/train/data/text_data.h"
#include "fovea/train/tokenizers/clean_text.h"
#include "train/data/split_size.h"

namespace fovea {
namespace {

void check_batch(const char* name, std::int64_t batch) {
  if (batch < 1) fail<ValueError>("[{}] the batch has {} lines: it needs at least 1", name, batch);
}

}  // namespace

LineData::LineData(std::string_view bytes, const Tokenizer& tokenizer) : vocabulary_(tokenizer.size()) {
  const std::optional<std::int64_t> newline = tokenizer.find("\n");
  if (!newline) {
    fail<ValueError>(
        "[LineData] the tokenizer has no token for the newline, which stands before and after each "
        "line: make the tokenizer from the whole text");
  }
  boundary_ = *newline;
  const std::string cleaned = clean_text(bytes);
  std::string_view text = cleaned;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    std::vector<std::int64_t>& ids = lines_.emplace_back(1, boundary_);
    try {
      const std::vector<std::int64_t> encoded = tokenizer.encode(line);
      ids.insert(ids.end(), encoded.begin(), encoded.end());
    } catch (const ValueError& error) {
      fail<ValueError>("[LineData] line {}: {}", number, error.what());
    }
    ids.push_back(boundary_);
  }
  if (lines_.empty()) fail<ValueError>("[LineData] the text has no lines: it needs at least 1");
}

std::int64_t LineData::context() const {
  const auto longest = std::ranges::max_element(lines_, {}, [](const auto& line) { return line.size(); });
  return static_cast<std::int64_t>(longest->size()) - 1;
}

const std::vector<std::int64_t>& LineData::line(std::int64_t index) const {
  if (index < 0 || index >= size()) {
    fail<IndexError>("[LineData::line] line {} is outside the {} lines of the data", index, size());
  }
  return lines_[static_cast<std::size_t>(index)];
}

LineData LineData::select(std::span<const std::int64_t> indices) const {
  if (indices.empty()) fail<ValueError>("[LineData::select] no lines are selected: select at least 1");
  LineData selected;
  selected.vocabulary_ = vocabulary_;
  selected.boundary_ = boundary_;
  for (const std::int64_t index : indices) selected.lines_.push_back(line(index));
  return selected;
}

Split<LineData> split(const LineData& data, double validation, Rng& rng) {
  const std::int64_t drawn = detail::validation_size("lines", data.size(), validation);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(data.size()));
  std::iota(indices.begin(), indices.end(), 0);
  // The first places of a Fisher-Yates shuffle are a draw without replacement.
  for (std::int64_t i = 0; i < drawn; ++i) {
    const std::int64_t other = i + rng.uniform_int(data.size() - i);
    std::swap(indices[static_cast<std::size_t>(i)], indices[static_cast<std::size_t>(other)]);
  }
  const std::span<std::int64_t> all(indices);
  const auto cut = static_cast<std::size_t>(drawn);
  std::ranges::sort(all.first(cut));
  std::ranges::sort(all.subspan(cut));
  return {data.select(all.subspan(cut)), data.select(all.first(cut))};
}

Batch random_batch(const LineData& data, std::int64_t batch, Rng& rng) {
  check_batch("random_batch", batch);
  std::vector<std::vector<std::int64_t>> rows;
  for (std::int64_t b = 0; b < batch; ++b) rows.push_back(data.line(rng.uniform_int(data.size())));
  return next_token_batch(rows, data.boundary(), ignored_target);
}

std::int64_t batch_count(const LineData& data, std::int64_t batch) {
  check_batch("batch_count", batch);
  return (data.size() + batch - 1) / batch;
}

Batch batch_at(const LineData& data, std::int64_t batch, std::int64_t index) {
  check_batch("batch_at", batch);
  const std::int64_t batches = batch_count(data, batch);
  if (index < 0 || index >= batches) {
    fail<IndexError>("[batch_at] batch {} is outside the {} batches of the data", index, batches);
  }
  std::vector<std::vector<std::int64_t>> rows;
  const std::int64_t end = std::min((index + 1) * batch, data.size());
  for (std::int64_t i = index * batch; i < end; ++i) rows.push_back(data.line(i));
  return next_token_batch(rows, data.boundary(), ignored_target);
}

}  // namespace fovea
