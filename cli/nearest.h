#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fovea::cli {

/// The end of an error about a name that there is not: "; did you mean NAME?" with the most similar of the
/// names that there are, or nothing where none is similar.
std::string did_you_mean(std::string_view word, std::span<const std::string> names);

}  // namespace fovea::cli
