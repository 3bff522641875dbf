#pragma once

#include <chrono>

#include "fovea/gradcheck/gradcheck.h"

// A report begins with the options and ends with its elements sorted and its time taken.
namespace fovea::detail {

using Clock = std::chrono::steady_clock;

GradcheckReport new_report(const GradcheckOptions& options);
void finish(GradcheckReport& report, Clock::time_point start);

}  // namespace fovea::detail
