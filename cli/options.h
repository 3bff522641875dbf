#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>

namespace fovea::cli {

// Checks of options. They have no description, which would crowd out the words in the help text.

/// A whole number in a range.
CLI::Validator count(std::int64_t low, std::int64_t high = 1'000'000'000);
/// Of a seed: a whole number from 0 on.
CLI::Validator seed();
/// A finite number in a range.
CLI::Validator within(double low, double high);
/// A finite number that is not below.
CLI::Validator at_least(double low);
/// A finite number above 0.
CLI::Validator positive();

}  // namespace fovea::cli
