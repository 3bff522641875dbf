#include "train/loop/trainer_state.h"

#include <nlohmann/json.hpp>

#include "autograd/base/fail.h"

namespace fovea::detail {
namespace {

using Json = nlohmann::ordered_json;

// Of the form, for programs that read it later.
constexpr std::int64_t version = 1;

template <class T>
T whole_number(const Json& json, const char* key) {
  const Json& value = json.at(key);
  // Signed ones that are not negative are unsigned too.
  if (!value.is_number_unsigned() ||
      value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<T>::max()})
    throw std::invalid_argument(fmt::format("{} is {}", key, value.dump()));
  return value.get<T>();
}

double number_or_nan(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

Json to_json(const Rng::State& state) { return {{"seed", state.seed}, {"position", state.position}}; }

Rng::State rng_state(const Json& json) {
  return {whole_number<std::uint64_t>(json, "seed"), whole_number<std::uint64_t>(json, "position")};
}

TrainerState parsed(const Json& json) {
  const auto number = [&](const char* key) { return whole_number<std::int64_t>(json, key); };
  if (number("version") != version)
    throw std::invalid_argument(
        fmt::format("version is {}, and {} is known", json["version"].dump(), version));
  TrainerState state;
  state.step = number("step");
  state.batches = number("batches");
  state.tokens = number("tokens");
  state.data_rng = rng_state(json.at("data_rng"));
  state.dropout_rng = rng_state(json.at("dropout_rng"));
  state.loss = number_or_nan(json, "loss");
  const Json& evaluation = json.at("evaluation");
  if (!evaluation.is_null()) {
    state.evaluated_at = whole_number<std::int64_t>(evaluation, "step");
    state.evaluation = number_or_nan(evaluation, "loss");
    if (!evaluation.at("best").is_null()) state.best_evaluation = evaluation.at("best").get<double>();
    state.evaluations_since_best = whole_number<std::int64_t>(evaluation, "since_best");
  }
  const Json& recent = json.at("recent_losses");
  state.recent = {whole_number<std::int64_t>(recent, "count"), recent.at("mean").get<double>(),
                  recent.at("variance").get<double>()};
  const Json& skipped = json.at("skipped");
  state.skipped_non_finite = whole_number<std::int64_t>(skipped, "non_finite");
  state.skipped_outliers = whole_number<std::int64_t>(skipped, "outliers");
  state.skipped_in_row = whole_number<std::int64_t>(skipped, "in_row");
  const Json& sizes = json.at("log_sizes");
  for (const auto& [name, size] : sizes.items())
    state.log_sizes[name] = whole_number<std::uint64_t>(sizes, name.c_str());
  return state;
}

}  // namespace

std::string to_json(const TrainerState& state) {
  Json evaluation;
  if (state.evaluated_at >= 0) {
    evaluation = {{"step", state.evaluated_at},
                  {"loss", state.evaluation},
                  {"best", nullptr},
                  {"since_best", state.evaluations_since_best}};
    if (state.best_evaluation) evaluation["best"] = *state.best_evaluation;
  }
  return Json{
      {"version", version},
      {"step", state.step},
      {"batches", state.batches},
      {"tokens", state.tokens},
      {"data_rng", to_json(state.data_rng)},
      {"dropout_rng", to_json(state.dropout_rng)},
      {"loss", state.loss},
      {"evaluation", evaluation},
      {"recent_losses",
       {{"count", state.recent.count}, {"mean", state.recent.mean}, {"variance", state.recent.variance}}},
      {"skipped",
       {{"non_finite", state.skipped_non_finite},
        {"outliers", state.skipped_outliers},
        {"in_row", state.skipped_in_row}}},
      {"log_sizes", state.log_sizes}}
      .dump();
}

TrainerState trainer_state_from_json(const std::string& what, const std::string& json) {
  try {
    return parsed(Json::parse(json));
  } catch (const std::exception& error) {
    fail<FileError>("{} does not say where its run was: {}", what, error.what());
  }
}

}  // namespace fovea::detail
