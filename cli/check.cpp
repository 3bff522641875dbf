#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cases/cases.h"
#include "cases/layer_cases.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "fovea/autograd/base/error.h"

namespace fovea::cli {
namespace {

struct CheckSettings {
  std::string filter;
  int order = 1;
  std::uint64_t seed = 1;
  std::uint64_t seeds = 1;  // how many seeds, starting with `seed`
  bool json = false;
  bool verbose = false;
};

// What one check found.
struct Result {
  std::int64_t elements = 0;
  double worst = 0;
  std::string verdict;
  std::vector<std::string> failures;
  std::string details;  // the table of a layer, which --verbose prints even if it passes
};

struct Check {
  std::string name;
  const char* kind;
  std::function<Result(std::uint64_t seed)> run;
};

Result check_op(const Case& row, int order, std::uint64_t seed) {
  CaseReport report = check(row, {.seed = seed, .order = order});
  return {report.elements, report.worst, std::move(report.verdict), std::move(report.failures), ""};
}

Result check_layer(const LayerCase& row, int order, std::uint64_t seed) {
  const GradcheckReport report = row.check({.order = order, .seed = seed});
  Result result{report.elements, report.worst(), report.verdict(), {}, to_string(report)};
  if (!report.passed()) result.failures.push_back(result.details);
  return result;
}

std::vector<Check> checks_that_match(const CheckSettings& settings) {
  std::vector<Check> checks;
  const auto add = [&](const std::string& name, const char* kind, auto run) {
    if (name.find(settings.filter) != std::string::npos) checks.push_back({name, kind, std::move(run)});
  };
  const int order = settings.order;
  for (Case& row : all_cases()) {
    add(row.name, "op", [row, order](std::uint64_t seed) { return check_op(row, order, seed); });
  }
  for (LayerCase& row : all_layer_cases()) {
    add(row.name, "layer", [row, order](std::uint64_t seed) { return check_layer(row, order, seed); });
  }
  return checks;
}

// An exception fails this check, and the others still run.
Result run(const Check& check, std::uint64_t seed) {
  try {
    return check.run(seed);
  } catch (const std::exception& error) {
    return {0, 0, "error", {error.what()}, ""};
  }
}

// Runs a check for every seed. Gives the worst error of all seeds, the verdict of the first seed that fails,
// and every failure.
Result run(const Check& check, const CheckSettings& settings) {
  Result all;
  for (std::uint64_t seed = settings.seed; seed < settings.seed + settings.seeds; ++seed) {
    Result result = run(check, seed);
    if (all.failures.empty()) all.verdict = std::move(result.verdict);
    for (const std::string& failure : result.failures) {
      all.failures.push_back(settings.seeds == 1 ? failure : fmt::format("seed {}: {}", seed, failure));
    }
    all.elements += result.elements;
    if (seed == settings.seed || !(result.worst <= all.worst)) {
      all.worst = result.worst;
      all.details = std::move(result.details);
    }
  }
  return all;
}

// Names the running check in a line that is overwritten, if stderr is a terminal.
void show_progress(std::size_t done, std::size_t all, const std::string& name) {
  if (!is_terminal(stderr)) return;
  fmt::print(stderr, "\r\033[K{}/{} {}", done, all, name);
  std::fflush(stderr);
}
void clear_progress() {
  if (is_terminal(stderr)) fmt::print(stderr, "\r\033[K");
}

constexpr int name_width = 58;

void print_line(const Check& check, const Result& result, bool verbose) {
  fmt::print("{:<{}} {:>9} {:>10.1e}  {}\n", check.name, name_width, with_commas(result.elements),
             result.worst, result.verdict);
  const auto indented = [](std::string text) {
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 3)
      text.replace(at, 1, "\n  ");
    return text;
  };
  if (verbose && result.failures.empty() && !result.details.empty())
    fmt::print("  {}\n", indented(result.details));
  // Without --verbose only the first failure is printed: the others often follow from it.
  const std::size_t shown =
      verbose ? result.failures.size() : std::min<std::size_t>(1, result.failures.size());
  for (std::size_t i = 0; i < shown; ++i) fmt::print("  {}\n", indented(result.failures[i]));
  if (shown < result.failures.size()) {
    fmt::print("  ... and {} more failures, which --verbose prints\n", result.failures.size() - shown);
  }
}

std::string seeds_text(const CheckSettings& settings) {
  if (settings.seeds == 1) return fmt::format("seed {}", settings.seed);
  return fmt::format("seeds {} to {}", settings.seed, settings.seed + settings.seeds - 1);
}

nlohmann::ordered_json json_of(const Check& check, const Result& result) {
  nlohmann::ordered_json json{{"name", check.name},
                              {"kind", check.kind},
                              {"elements", result.elements},
                              {"verdict", result.verdict},
                              {"passed", result.failures.empty()},
                              {"failures", result.failures}};
  // JSON has no number for NaN and infinity.
  if (std::isfinite(result.worst)) {
    json["worst"] = result.worst;
  } else {
    json["worst"] = nullptr;
  }
  return json;
}

void print_total(const CheckSettings& settings, std::size_t checks, std::int64_t failed,
                 std::int64_t elements, double seconds, const nlohmann::ordered_json& rows) {
  if (settings.json) {
    const nlohmann::ordered_json all{{"passed", failed == 0}, {"order", settings.order},
                                     {"seed", settings.seed}, {"seeds", settings.seeds},
                                     {"seconds", seconds},    {"checks", rows}};
    fmt::print("{}\n", all.dump(2));
  } else {
    fmt::print("\n{} passed, {} failed: {} elements, orders up to {}, {}, {:.1f} s\n",
               static_cast<std::int64_t>(checks) - failed, failed, with_commas(elements), settings.order,
               seeds_text(settings), seconds);
  }
}

int check_all(const CheckSettings& settings) {
  const std::vector<Check> checks = checks_that_match(settings);
  if (checks.empty()) {
    throw ValueError(
        fmt::format("no op or layer has \"{}\" in its name: run fovea check without --filter for the names",
                    detail::printable(settings.filter, 80)));
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::int64_t elements = 0, failed = 0;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  if (!settings.json) {
    fmt::print("{:<{}} {:>9} {:>10}  verdict\n", "op or layer", name_width, "elements", "worst");
  }
  for (std::size_t i = 0; i < checks.size(); ++i) {
    show_progress(i + 1, checks.size(), checks[i].name);
    const Result result = run(checks[i], settings);
    clear_progress();
    elements += result.elements;
    failed += !result.failures.empty();
    if (settings.json) {
      rows.push_back(json_of(checks[i], result));
    } else {
      print_line(checks[i], result, settings.verbose);
      std::fflush(stdout);
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  print_total(settings, checks.size(), failed, elements, seconds, rows);
  return failed == 0 ? 0 : 1;
}

}  // namespace

Command check_command(CLI::App& program) {
  const auto settings = std::make_shared<CheckSettings>();
  CLI::App* parser =
      program.add_subcommand("check", "Check the gradients of every op and layer against finite differences");
  add_value(*parser, "--filter", settings->filter,
            "Check only the ops and layers whose name contains this text");
  add_value(*parser, "--order", settings->order, "The highest order of derivatives to check: 1 or 2")
      ->check(count(1, 2));
  add_value(*parser, "--seed", settings->seed, "The seed of the random inputs and cotangents")->check(seed());
  add_value(*parser, "--seeds", settings->seeds, "How many seeds to check, starting with --seed")
      ->check(count(1));
  add_switch(*parser, "--json", settings->json, "Print the results as JSON");
  add_switch(*parser, "--verbose", settings->verbose, "Print every failure, and the table of every layer");
  return {parser, [settings] { return check_all(*settings); }};
}

}  // namespace fovea::cli
