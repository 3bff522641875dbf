#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "autograd/base/fail.h"
#include "autograd/tensor/tensor_impl.h"
#include "fovea/autograd/tensor/tensor.h"

// NumPy's way of printing arrays with its default options: as many digits as tell an element from its
// neighbours, at most 8 after the point; one width for all; the middle left out of a long array.
namespace fovea {
namespace {

constexpr std::int64_t summarise_beyond = 1000;
constexpr std::int64_t edge_items = 3;
constexpr int most_digits = 8;
constexpr std::size_t line_width = 75;

// x with the fewest digits after the point that read back as x, or as x rounded to the most digits, in fixed
// ('f') or scientific ('e') notation.
template <class T>
std::string shortest(T x, char notation) {
  const auto write = [&](int digits) {
    return notation == 'e' ? fmt::format("{:.{}e}", x, digits) : fmt::format("{:.{}f}", x, digits);
  };
  const auto read = [](const std::string& text) { return std::strtod(text.c_str(), nullptr); };
  const double rounded = read(write(most_digits));
  for (int digits = 0;; ++digits) {
    std::string text = write(digits);
    const double value = read(text);
    if (static_cast<T>(value) == x || value == rounded) return text;
  }
}

std::size_t digits_after_point(const std::string& text) {
  const std::size_t point = text.find('.');
  return point == std::string::npos ? 0 : std::min(text.find('e'), text.size()) - point - 1;
}

class Printer {
 public:
  explicit Printer(const Tensor& x) : x_(x), summarise_(x.numel() > summarise_beyond) {
    collect(0, 0);
    choose_notation();
    choose_width();
  }

  // The rest of the tensor from `axis` on, the element at `offset` first.
  std::string print(std::size_t axis, std::int64_t offset) const {
    if (axis == x_.rank()) return text_of(element(offset));
    std::vector<std::string> parts;
    for_each_shown(
        axis, [&](std::int64_t i) { parts.push_back(print(axis + 1, offset + i * x_.strides()[axis])); },
        [&] { parts.push_back("..."); });
    if (axis + 1 == x_.rank()) return "[" + join_row(parts) + "]";
    const std::string separator = std::string(x_.rank() - axis - 1, '\n') + std::string(axis + 1, ' ');
    return fmt::format("[{}]", fmt::join(parts, separator));
  }

 private:
  // Calls item(i) for each index of an axis that is shown, gap() once where some are left out.
  template <class Item, class Gap>
  void for_each_shown(std::size_t axis, Item item, Gap gap) const {
    const std::int64_t n = x_.shape()[axis];
    const bool cut = summarise_ && n > 2 * edge_items;
    for (std::int64_t i = 0; i < n; ++i) {
      if (cut && i == edge_items) {
        gap();
        i = n - edge_items;
      }
      item(i);
    }
  }

  double element(std::int64_t offset) const {
    return dispatch(x_.dtype(), [&]<class T>() { return static_cast<double>(x_.data<T>()[offset]); });
  }

  void collect(std::size_t axis, std::int64_t offset) {
    if (axis == x_.rank()) {
      shown_.push_back(element(offset));
    } else {
      for_each_shown(
          axis, [&](std::int64_t i) { collect(axis + 1, offset + i * x_.strides()[axis]); }, [] {});
    }
  }

  void choose_notation() {
    double largest = 0, smallest = INFINITY;
    for (const double value : shown_) {
      if (!std::isfinite(value) || value == 0) continue;
      largest = std::max(largest, std::abs(value));
      smallest = std::min(smallest, std::abs(value));
    }
    notation_ = largest >= 1e8 || (largest > 0 && (smallest < 1e-4 || largest / smallest > 1000)) ? 'e' : 'f';
  }

  void choose_width() {
    for (const double value : shown_) {
      if (std::isfinite(value)) digits_ = std::max(digits_, digits_after_point(shortest_of(value)));
    }
    for (const double value : shown_) width_ = std::max(width_, unpadded(value).size());
  }

  std::string shortest_of(double value) const {
    return dispatch(x_.dtype(), [&]<class T>() { return shortest(static_cast<T>(value), notation_); });
  }

  // Scientific notation fills up with zeros, fixed notation with spaces: "1.  0.25".
  std::string unpadded(double value) const {
    if (!std::isfinite(value)) return fmt::format("{}", value);
    if (notation_ == 'e') return fmt::format("{:#.{}e}", value, digits_);
    std::string text = shortest_of(value);
    if (text.find('.') == std::string::npos) text += '.';
    return text + std::string(digits_ - digits_after_point(text), ' ');
  }

  std::string text_of(double value) const { return fmt::format("{:>{}}", unpadded(value), width_); }

  // One row, broken where a line would be too long. Each bracket around it takes its place on the line.
  std::string join_row(const std::vector<std::string>& parts) const {
    const std::string indent(x_.rank(), ' ');
    const std::size_t room = line_width - x_.rank();
    std::string row;
    std::size_t column = indent.size();
    for (const std::string& part : parts) {
      if (column + part.size() > room && column > indent.size()) {
        row.resize(row.find_last_not_of(' ') + 1);
        row += "\n" + indent;
        column = indent.size();
      }
      row += part + " ";
      column += part.size() + 1;
    }
    if (!row.empty()) row.pop_back();
    return row;
  }

  const Tensor& x_;
  bool summarise_;
  std::vector<double> shown_;
  char notation_ = 'f';
  std::size_t digits_ = 0;  // after the point, of the element that needs most
  std::size_t width_ = 0;
};

// As Python writes a number: "1.0", "0.1".
std::string print_scalar(const Tensor& x) {
  const std::string text =
      dispatch(x.dtype(), [&]<class T>() { return fmt::format("{}", static_cast<T>(x.item())); });
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

}  // namespace

std::string to_string(const Tensor& x) {
  if (!x.defined()) return "undefined";
  if (x.rank() == 0) return print_scalar(x);
  if (x.numel() == 0) return "[]";
  return Printer(x).print(0, 0);
}

}  // namespace fovea
