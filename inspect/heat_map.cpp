#include "fovea/inspect/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "autograd/base/columns.h"
#include "autograd/base/fail.h"
#include "autograd/base/text.h"

namespace fovea {
namespace {

// --- Text in columns -------------------------------------------------------------------------------------

using detail::column_count;
using detail::printable;

std::string centred(const std::string& text, std::size_t width) {
  const std::size_t blank = width - std::min(width, column_count(text));
  return std::string(blank / 2, ' ') + text + std::string(blank - blank / 2, ' ');
}

// Ends a line, without blanks before the newline. Coloured blanks stay, because an escape sequence follows
// them.
void end_line(std::string& text) {
  text.erase(text.find_last_not_of(' ') + 1);
  text += '\n';
}

// --- Shades ----------------------------------------------------------------------------------------------

struct Rgb {
  int red, green, blue;
};

// The colour of a weight: from near black over dark red and orange to a warm yellow, linear in between.
Rgb heat(double weight) {
  constexpr std::array<Rgb, 4> stops{{{28, 28, 36}, {120, 20, 40}, {225, 95, 20}, {255, 215, 95}}};
  const double place = weight * (stops.size() - 1);
  const auto i = std::min(static_cast<std::size_t>(place), stops.size() - 2);
  const auto mix = [t = place - static_cast<double>(i)](int from, int to) {
    return static_cast<int>(std::lround(from + t * (to - from)));
  };
  return {mix(stops[i].red, stops[i + 1].red), mix(stops[i].green, stops[i + 1].green),
          mix(stops[i].blue, stops[i + 1].blue)};
}

// The nearest colour of xterm's 6 x 6 x 6 cube, which begins at index 16 and has the levels 0, 95, 135, ...,
// 255.
int palette_index(const Rgb& colour) {
  const auto level = [](int value) { return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40; };
  return 16 + 36 * level(colour.red) + 6 * level(colour.green) + level(colour.blue);
}

// The text on the background of its weight, in black or white, whichever is easier to read.
std::string on_heat(const std::string& text, double weight, Colours colours) {
  const Rgb colour = heat(weight);
  const bool bright = 299 * colour.red + 587 * colour.green + 114 * colour.blue > 128000;
  const std::string background = colours == Colours::rgb
                                     ? fmt::format("48;2;{};{};{}", colour.red, colour.green, colour.blue)
                                     : fmt::format("48;5;{}", palette_index(colour));
  return fmt::format("\x1b[38;5;{};{}m{}\x1b[0m", bright ? 16 : 231, background, text);
}

std::string shade(double weight, std::size_t width) {
  constexpr std::array<const char*, 5> shades{" ", "░", "▒", "▓", "█"};
  const auto step = weight < 0.01 ? 0 : static_cast<std::size_t>(std::ceil(4 * weight));
  std::string text;
  for (std::size_t i = 0; i < width; ++i) text += shades[step];
  return text;
}

std::string percent(double weight) { return fmt::format("{:.0f}%", 100 * weight); }

// --- Lines of the map ------------------------------------------------------------------------------------

std::vector<double> checked_weights(const Tensor& weights, const Shape& expected) {
  if (weights.shape() != expected) {
    fail<ShapeError>("[heat_map] weights are {}: expected {}, one for each word", to_string(weights.shape()),
                     to_string(expected));
  }
  std::vector<double> values = weights.to_vector();
  for (double& value : values) {
    if (!(value >= -1e-5 && value <= 1 + 1e-5)) {
      fail<ValueError>("[heat_map] weight {} is {}: attention weights must be between 0 and 1",
                       &value - values.data(), value);
    }
    value = std::clamp(value, 0.0, 1.0);
  }
  return values;
}

struct Cell {
  std::string word;
  double weight;
  std::size_t width;  // of its column; a blank separates columns
};

std::vector<Cell> cells_of(std::span<const std::string> words, const std::vector<double>& weights) {
  std::vector<Cell> cells;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = printable(words[i]);
    const std::size_t width = std::max(column_count(word), column_count(percent(weights[i]))) + 2;
    cells.push_back({word, weights[i], width});
  }
  return cells;
}

// One line of the sentence: words, then shades if there are no colours, then percentages.
std::string draw_line(std::span<const Cell> cells, Colours colours) {
  std::string words, shades, percents;
  for (const Cell& cell : cells) {
    const std::string word = centred(cell.word, cell.width);
    words += (colours == Colours::none ? word : on_heat(word, cell.weight, colours)) + ' ';
    shades += shade(cell.weight, cell.width) + ' ';
    percents += centred(percent(cell.weight), cell.width) + ' ';
  }
  end_line(words);
  end_line(percents);
  if (colours != Colours::none) return words + percents;
  end_line(shades);
  return words + shades + percents;
}

}  // namespace

std::string heat_map(std::span<const std::string> words, const Tensor& weights,
                     const HeatMapOptions& options) {
  const std::vector<double> values = checked_weights(weights, {static_cast<std::int64_t>(words.size())});
  const std::vector<Cell> cells = cells_of(words, values);
  const auto limit = static_cast<std::size_t>(std::max<std::int64_t>(options.width, 0));
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < cells.size(); begin = end) {
    std::size_t used = 0;
    do {
      used += cells[end++].width + 1;
    } while (end < cells.size() && used + cells[end].width <= limit);
    text += draw_line(std::span(cells).subspan(begin, end - begin), options.colours);
  }
  return text;
}

std::string heat_map(std::span<const std::string> queries, std::span<const std::string> keys,
                     const Tensor& weights, const HeatMapOptions& options) {
  constexpr std::size_t cell = 3;
  const Shape expected{static_cast<std::int64_t>(queries.size()), static_cast<std::int64_t>(keys.size())};
  const std::vector<double> values = checked_weights(weights, expected);
  const auto label = [](std::span<const std::string> words, std::size_t i) {
    return fmt::format("{:>2} {}", i, printable(words[i]));
  };
  std::size_t margin = 0;
  for (std::size_t q = 0; q < queries.size(); ++q)
    margin = std::max(margin, column_count(label(queries, q)) + 1);

  std::string text(margin, ' ');
  for (std::size_t k = 0; k < keys.size(); ++k) text += fmt::format("{:>{}}", k % 100, cell);
  end_line(text);
  for (std::size_t q = 0; q < queries.size(); ++q) {
    text += detail::padded(label(queries, q), margin);
    for (std::size_t k = 0; k < keys.size(); ++k) {
      const double weight = values[q * keys.size() + k];
      text += options.colours == Colours::none ? shade(weight, cell)
                                               : on_heat(std::string(cell, ' '), weight, options.colours);
    }
    end_line(text);
  }
  return text;
}

}  // namespace fovea
