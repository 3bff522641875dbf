#include "cli/score_file.h"

#include <fmt/format.h>

#include "autograd/base/text.h"
#include "fovea/autograd/base/error.h"
#include "train/io/file.h"
#include "train/io/json.h"

namespace fovea::cli {

using nlohmann::json;

std::string score_text(const std::vector<Metric>& metrics) {
  json list = json::array();
  for (const Metric& metric : metrics) {
    list.push_back({{"name", metric.name}, {"value", metric.value}, {"reached", metric.reached()}});
  }
  return list.dump() + "\n";
}

std::vector<ScoreEntry> read_score(const std::filesystem::path& run) {
  const std::filesystem::path file = run / score_file;
  if (!std::filesystem::exists(file)) return {};
  try {
    std::vector<ScoreEntry> score;
    for (const json& entry : detail::parse_json(detail::read_file("read_score", file))) {
      score.push_back({entry.at("name").get<std::string>(), entry.at("value").get<double>(),
                       entry.at("reached").get<bool>()});
    }
    return score;
  } catch (const std::exception&) {
    throw FileError(fmt::format("{} is not a list of metrics, as fovea train writes it",
                                detail::printable(file.string())));
  }
}

}  // namespace fovea::cli
