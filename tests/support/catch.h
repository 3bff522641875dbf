#pragma once

// Catch2 by the names of version 3, whichever version is there: 2 is one header, 3 is many.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>

#include <string>

namespace Catch::Matchers {
inline auto ContainsSubstring(const std::string& text) { return Contains(text); }
}  // namespace Catch::Matchers
#endif

using Catch::Matchers::ContainsSubstring;
