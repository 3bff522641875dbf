#include "train/loop/trainer_status_json.h"

#include <nlohmann/json.hpp>

#include "autograd/base/fail.h"
#include "train/io/json.h"
#include "train/loop/json_fields.h"

namespace fovea::detail {
namespace {

using Json = nlohmann::ordered_json;

// The version of the format, so that a later release can tell it from its own.
constexpr std::int64_t version = 2;

double number_or_nan(const nlohmann::json& json, const char* key) {
  const nlohmann::json& value = json.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

Json to_json(const Rng::State& state) { return {{"seed", state.seed}, {"position", state.position}}; }

Rng::State rng_state(const nlohmann::json& json) {
  return {whole_number<std::uint64_t>(json, "seed"), whole_number<std::uint64_t>(json, "position")};
}

void read_evaluation(const nlohmann::json& json, TrainerStatus& status) {
  if (json.is_null()) return;
  status.evaluated_at = whole_number<std::int64_t>(json, "step");
  status.evaluation = number_or_nan(json, "loss");
  if (!json.at("best").is_null()) status.best_evaluation = json.at("best").get<double>();
  status.evaluations_since_best = whole_number<std::int64_t>(json, "since_best");
}

RecentLosses recent_losses(const nlohmann::json& json) {
  return {whole_number<std::int64_t>(json, "count"), json.at("mean").get<double>(),
          json.at("variance").get<double>()};
}

TrainerStatus parsed(const nlohmann::json& json) {
  const auto number = [&](const char* key) { return whole_number<std::int64_t>(json, key); };
  if (const std::int64_t found = number("version"); found != version)
    throw std::invalid_argument(fmt::format("version is {}, and only {} is known", found, version));
  TrainerStatus status;
  status.step = number("step");
  status.batches = number("batches");
  status.tokens = number("tokens");
  status.data_rng = rng_state(json.at("data_rng"));
  status.dropout_rng = rng_state(json.at("dropout_rng"));
  status.loss = number_or_nan(json, "loss");
  read_evaluation(json.at("evaluation"), status);
  status.recent_losses = recent_losses(json.at("recent_losses"));
  const nlohmann::json& skipped = json.at("skipped");
  status.skipped_non_finite = whole_number<std::int64_t>(skipped, "non_finite");
  status.skipped_outliers = whole_number<std::int64_t>(skipped, "outliers");
  status.skipped_in_row = whole_number<std::int64_t>(skipped, "in_row");
  return status;
}

}  // namespace

std::string to_json(const TrainerStatus& status) {
  Json evaluation;
  if (status.evaluated_at >= 0) {
    evaluation = {{"step", status.evaluated_at},
                  {"loss", status.evaluation},
                  {"best", nullptr},
                  {"since_best", status.evaluations_since_best}};
    if (status.best_evaluation) evaluation["best"] = *status.best_evaluation;
  }
  return Json{{"version", version},
              {"step", status.step},
              {"batches", status.batches},
              {"tokens", status.tokens},
              {"data_rng", to_json(status.data_rng)},
              {"dropout_rng", to_json(status.dropout_rng)},
              {"loss", status.loss},
              {"evaluation", evaluation},
              {"recent_losses",
               {{"count", status.recent_losses.count},
                {"mean", status.recent_losses.mean},
                {"variance", status.recent_losses.variance}}},
              {"skipped",
               {{"non_finite", status.skipped_non_finite},
                {"outliers", status.skipped_outliers},
                {"in_row", status.skipped_in_row}}}}
      .dump();
}

TrainerStatus trainer_status_from_json(const std::string& what, const std::string& json) {
  try {
    return parsed(parse_json(json));
  } catch (const std::exception& error) {
    fail<FileError>("{} does not hold the status of a trainer: {}", what, error.what());
  }
}

}  // namespace fovea::detail
