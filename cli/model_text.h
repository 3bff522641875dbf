#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace fovea::cli {

/// Prints what a model writes, piece by piece. Into a file or a pipe, and where it is `raw`, it is printed as
/// it is. On a terminal a control character would be obeyed, which can change its title, colours or text
/// before: there every one but the newline and the tab is shown as an escape sequence, such as "\x1b".
class ModelText {
 public:
  ModelText(std::FILE* stream, bool raw);

  /// Prints a text, but keeps back a character whose last bytes are still to come.
  void print(std::string_view text);
  /// Prints what was kept back and a newline.
  void end_line();

 private:
  std::FILE* stream_;
  bool raw_;
  std::string kept_;
};

}  // namespace fovea::cli
