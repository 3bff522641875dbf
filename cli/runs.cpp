#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/columns.h"
#include "autograd/base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/score_file.h"
#include "cli/settings.h"
#include "cli/settings_file.h"
#include "cli/terminal.h"
#include "fovea/autograd/base/error.h"
#include "train/io/file.h"
#include "train/io/json.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t widest_cell = 40;

struct RunsRequest {
  std::string folder = "runs";
  bool as_json = false;
};

/// What the folder of a run says about it.
struct RunSummary {
  std::string name;
  std::map<std::string, std::string> settings;
  std::int64_t step = 0;
  std::optional<double> loss, best_loss;  ///< on held-out data
  std::vector<ScoreEntry> score;
  std::string fault = {};  ///< why the folder can't be read; empty if it can
};

// A line of a log as JSON; null if it is cut off.
json parsed_line(std::string_view line) {
  try {
    return detail::parse_json(line);
  } catch (const ValueError&) {
    return nullptr;
  }
}

// Takes the last step and the evaluations from a log, whose last line may be cut off.
void read_log(const fs::path& file, RunSummary& run) {
  if (!fs::exists(file)) return;
  const std::string log = detail::read_file("runs", file);
  std::string_view text = log;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const bool is_last = text.find('\n') == text.npos;
    if (!is_last && line.find("validation_loss") == line.npos) continue;
    const json entry = parsed_line(line);
    if (!entry.is_object()) continue;
    run.step = std::max(run.step, entry.value("step", std::int64_t{0}));
    if (!entry.contains("validation_loss") || !entry["validation_loss"].is_number()) continue;
    run.loss = entry["validation_loss"].get<double>();
    run.best_loss = std::min(run.best_loss.value_or(*run.loss), *run.loss);
  }
}

RunSummary summary_of(const fs::path& folder) {
  RunSummary run;
  run.name = folder.filename().string();
  try {
    for (const SettingsEntry& entry : read_settings_file(folder / settings_file)) {
      run.settings[entry.name] = entry.value;
    }
    read_log(folder / "log.jsonl", run);
    run.score = read_score(folder);
  } catch (const Error& error) {
    run.fault = error.what();
  } catch (const json::exception& error) {
    run.fault = error.what();
  }
  return run;
}

std::vector<RunSummary> runs_in(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw FileError(
        fmt::format("there is no folder {}, in which runs could be", detail::printable(folder.string())));
  }
  std::vector<RunSummary> runs;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && fs::exists(entry.path() / settings_file))
      runs.push_back(summary_of(entry.path()));
  }
  std::ranges::sort(runs, {}, &RunSummary::name);
  return runs;
}

// The names of the settings in which runs differ. Where a run lacks a setting, it has no effect there, but
// for what the run learns.
std::vector<std::string> different_settings(const std::vector<RunSummary>& runs) {
  std::map<std::string, std::map<std::string, std::size_t>> counts;  // of each value of each name
  for (const RunSummary& run : runs) {
    for (const auto& [name, value] : run.settings) ++counts[name][value];
  }
  std::vector<std::string> names;
  for (const auto& [name, values] : counts) {
    const bool is_lacking = values.begin()->second < runs.size();
    if (values.size() > 1 || (is_lacking && (name == "task" || name == "text"))) names.push_back(name);
  }
  return names;
}

std::string loss_text(const std::optional<double>& loss) { return loss ? fmt::format("{:.4f}", *loss) : ""; }

std::string score_cell(const RunSummary& run) {
  if (run.score.empty()) return "";
  const ScoreEntry& first = run.score.front();
  const bool reached = std::ranges::all_of(run.score, &ScoreEntry::reached);
  return fmt::format("{}: {:.4g}{}", first.name, first.value, reached ? "" : ", not reached");
}

using Row = std::vector<std::string>;

std::vector<Row> table_of(const std::vector<RunSummary>& runs) {
  const std::vector<std::string> names = different_settings(runs);
  std::vector<Row> rows{{"run", "steps", "loss", "best", "score"}};
  rows[0].insert(rows[0].end(), names.begin(), names.end());
  for (const RunSummary& run : runs) {
    const auto steps = run.settings.find("steps");
    Row row{run.name, fmt::format("{}/{}", run.step, steps == run.settings.end() ? "?" : steps->second),
            loss_text(run.loss), loss_text(run.best_loss), score_cell(run)};
    for (const std::string& name : names) {
      const auto value = run.settings.find(name);
      row.push_back(value == run.settings.end() ? "" : value->second);
    }
    if (!run.fault.empty()) row = {run.name, run.fault};
    for (std::string& cell : row) cell = detail::printable(cell, widest_cell);
    rows.push_back(std::move(row));
  }
  return rows;
}

void print_table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], detail::column_count(row[i]));
  }
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += detail::padded(row[i], widths[i]) + "  ";
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

json json_of(const RunSummary& run) {
  json result{{"run", run.name}, {"step", run.step}, {"settings", run.settings}};
  if (run.loss) result["validation_loss"] = *run.loss;
  if (run.best_loss) result["best_validation_loss"] = *run.best_loss;
  for (const ScoreEntry& entry : run.score) {
    result["score"].push_back({{"name", entry.name}, {"value", entry.value}, {"reached", entry.reached}});
  }
  if (!run.fault.empty()) result["fault"] = run.fault;
  return result;
}

int list_runs(const RunsRequest& request) {
  const std::vector<RunSummary> runs = runs_in(request.folder);
  if (request.as_json) {
    for (const RunSummary& run : runs) {
      fmt::print("{}\n", json_of(run).dump(-1, ' ', true, json::error_handler_t::replace));
    }
  } else if (runs.empty()) {
    fmt::print("there is no run in {}\n", detail::printable(request.folder));
  } else {
    print_table(table_of(runs));
  }
  return 0;
}

}  // namespace

Command runs_command(CLI::App& program) {
  const auto request = std::make_shared<RunsRequest>();
  CLI::App* parser = program.add_subcommand(
      "runs", "List the runs in a folder with their results and the settings in which they differ");
  parser->add_option("FOLDER", request->folder, "Where the runs are")->capture_default_str()->type_name("");
  add_switch(*parser, "--json", request->as_json, "Print each run as a line of JSON, with all its settings");
  return {parser, [request] { return list_runs(*request); }};
}

}  // namespace fovea::cli
