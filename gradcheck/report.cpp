#include "gradcheck/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <span>

#include "autograd/base/columns.h"

namespace fovea {
namespace {

// Sorts the elements from the worst to the best. Those whose relative error is NaN come first.
void sort_by_severity(std::vector<ElementCheck>& elements) {
  std::ranges::stable_sort(elements, std::greater<>(), [](const ElementCheck& element) {
    return std::isnan(element.relative) ? std::numeric_limits<double>::infinity() : element.relative;
  });
}

// --- Text --------------------------------------------------------------------------------------------------

std::string place_of(const ElementCheck& element, bool screened) {
  std::string place = element.index.empty() && screened ? "direction" : to_string(element.index);
  if (element.output) place += fmt::format(" of output {}", to_string(*element.output));
  return place;
}

std::string verdict_of(const ElementCheck& element) {
  std::string text = name_of(element.verdict);
  if (element.left && element.right)
    text += fmt::format(": slopes {:.6g} | {:.6g}", *element.left, *element.right);
  return text;
}

std::string table_of(std::span<const ElementCheck> elements, bool screened) {
  std::size_t name = 5, place = 5;
  for (const ElementCheck& element : elements) {
    name = std::max(name, detail::column_count(element.input));
    place = std::max(place, place_of(element, screened).size());
  }
  std::string text = fmt::format("\norder  {:<{}}  {:<{}}  {:>19}  {:>19} +- {:<8}  {:>8}  verdict", "input",
                                 name, "index", place, "analytic", "numeric", "error", "relative");
  for (const ElementCheck& element : elements) {
    const std::string order = element.order == 0 ? "value" : std::to_string(element.order);
    text +=
        fmt::format("\n{:<5}  {}  {:<{}}  {:>19.12g}  {:>19.12g} +- {:<8.1e}  {:>8.1e}  {}", order,
                    detail::padded(element.input, name), place_of(element, screened), place, element.analytic,
                    element.numeric, element.error, element.relative, verdict_of(element));
  }
  return text;
}

// The limit of an element, in the letters that gradcheck.h explains.
std::string limit_of(const GradcheckReport& report) {
  return fmt::format("{:.0e} (|numeric| + 0.1 L) + s", report.tolerance);
}

std::string summary_of(const GradcheckReport& report) {
  const char* what = report.screened ? "directions and elements" : "elements";
  std::string text = fmt::format(
      "{}: {} {} of {} tensors, {} failed, {} at kinks; worst relative error {:.1e}, limit {}; {} "
      "evaluations in "
      "{:.2f} s, seed {}",
      report.passed() ? "passed" : "FAILED", report.elements, what, report.tensors.size(),
      report.failures.size(), report.kinks.size(), report.worst(), limit_of(report), report.evaluations,
      report.seconds, report.seed);
  if (report.screened)
    text += "\nscreened along random directions: this is a sample and does not cover every element";
  return text;
}

std::string verdicts_on_the_whole(const GradcheckReport& report) {
  std::string text;
  if (!report.aliased.empty()) text += "\naliased: " + report.aliased;
  if (!report.not_deterministic.empty()) text += "\nnot deterministic: " + report.not_deterministic;
  if (report.tensors.empty() && report.aliased.empty() && report.not_deterministic.empty())
    text += "\nvacuous: there is no input to check";
  for (const TensorCheck& tensor : report.tensors) {
    if (!tensor.vacuous) continue;
    text += fmt::format("\nvacuous: order {}, {} {}: {} (name it in `expect_zero` to allow that)",
                        tensor.order, tensor.input, to_string(tensor.shape),
                        tensor.elements ? "every gradient is zero" : "no element was checked");
  }
  if (!report.f32.empty()) text += "\nf32 was not compared: " + report.f32;
  return text;
}

std::vector<ElementCheck> rows_of(const GradcheckReport& report) {
  std::vector<ElementCheck> rows = report.failures;
  rows.insert(rows.end(), report.kinks.begin(), report.kinks.end());
  if (!rows.empty()) return rows;
  for (const TensorCheck& tensor : report.tensors) {
    if (tensor.elements > 0) rows.push_back(tensor.worst);
  }
  std::ranges::stable_sort(rows, std::greater<>(), &ElementCheck::relative);
  return rows;
}

// --- JSON --------------------------------------------------------------------------------------------------

using Json = nlohmann::ordered_json;

Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json json_of(const Shape& shape) { return Json(std::vector<std::int64_t>(shape.begin(), shape.end())); }

Json json_of(const ElementCheck& element) {
  Json json{{"order", element.order},
            {"input", element.input},
            {"index", json_of(element.index)},
            {"analytic", number(element.analytic)},
            {"numeric", number(element.numeric)},
            {"error", number(element.error)},
            {"relative", number(element.relative)},
            {"verdict", name_of(element.verdict)}};
  if (element.output) json["output"] = json_of(*element.output);
  if (element.left) json["left"] = number(*element.left);
  if (element.right) json["right"] = number(*element.right);
  return json;
}

Json json_of(const TensorCheck& tensor) {
  Json json{{"order", tensor.order},
            {"input", tensor.input},
            {"shape", json_of(tensor.shape)},
            {"elements", tensor.elements},
            {"largest", number(tensor.largest)},
            {"vacuous", tensor.vacuous}};
  if (tensor.elements > 0) json["worst"] = json_of(tensor.worst);
  if (!tensor.hint.empty()) json["hint"] = tensor.hint;
  return json;
}

template <class T>
Json list_of(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(json_of(item));
  return list;
}

}  // namespace

GradcheckReport detail::new_report(const GradcheckOptions& options) {
  return {.tolerance = options.tolerance,
          .seed = options.seed,
          .screened = options.screen.has_value(),
          .kinks_fail = options.kinks_fail};
}

void detail::finish(GradcheckReport& report, Clock::time_point start) {
  sort_by_severity(report.failures);
  sort_by_severity(report.kinks);
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "pass";
    case Verdict::kink:
      return "kink";
    case Verdict::wrong:
      return "wrong";
    case Verdict::inconclusive:
      return "inconclusive";
    case Verdict::non_finite:
      return "non-finite";
    case Verdict::f32_drift:
      return "f32-drift";
  }
  return "";
}

bool GradcheckReport::passed() const {
  return failures.empty() && !tensors.empty() && not_deterministic.empty() && aliased.empty() &&
         std::ranges::none_of(tensors, &TensorCheck::vacuous);
}

std::string GradcheckReport::verdict() const {
  if (!aliased.empty()) return "aliased";
  if (!not_deterministic.empty()) return "not deterministic";
  for (const Verdict gravest :
       {Verdict::wrong, Verdict::non_finite, Verdict::inconclusive, Verdict::f32_drift, Verdict::kink}) {
    if (std::ranges::count(failures, gravest, &ElementCheck::verdict) > 0) return name_of(gravest);
  }
  if (!passed()) return "vacuous";
  return name_of(kinks.empty() ? Verdict::pass : Verdict::kink);
}

double GradcheckReport::worst() const {
  double worst = 0;
  for (const TensorCheck& tensor : tensors) {
    if (!(tensor.worst.relative <= worst)) worst = tensor.worst.relative;
  }
  return worst;
}

std::string to_string(const GradcheckReport& report, std::size_t rows) {
  std::string text = summary_of(report) + verdicts_on_the_whole(report);
  const std::vector<ElementCheck> all = rows_of(report);
  const std::size_t shown = std::min(rows, all.size());
  if (shown > 0) text += table_of(std::span(all).first(shown), report.screened);
  if (all.size() > shown) text += fmt::format("\n... and {} more", all.size() - shown);
  for (const TensorCheck& tensor : report.tensors) {
    if (!tensor.hint.empty())
      text += fmt::format("\nhint: {}, order {}: {}", tensor.input, tensor.order, tensor.hint);
  }
  return text;
}

std::string to_json(const GradcheckReport& report) {
  Json json{{"passed", report.passed()},
            {"tolerance", report.tolerance},
            {"limit", limit_of(report)},
            {"seed", report.seed},
            {"screened", report.screened},
            {"elements", report.elements},
            {"evaluations", report.evaluations},
            {"seconds", report.seconds},
            {"worst", number(report.worst())},
            {"tensors", list_of(report.tensors)},
            {"failures", list_of(report.failures)},
            {"kinks", list_of(report.kinks)}};
  if (!report.not_deterministic.empty()) json["not_deterministic"] = report.not_deterministic;
  if (!report.aliased.empty()) json["aliased"] = report.aliased;
  if (!report.f32.empty()) json["f32_not_compared"] = report.f32;
  return json.dump();
}

std::ostream& operator<<(std::ostream& out, const GradcheckReport& report) {
  return out << to_string(report);
}

}  // namespace fovea
