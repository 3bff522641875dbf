#pragma once

#include <string>

#include "fovea/train/loop/trainer_status.h"

namespace fovea::detail {

/// The status as one line of JSON. Finite numbers are read back exactly; NaN and infinities become NaN.
std::string to_json(const TrainerStatus& status);

/// Reads what `to_json` wrote. Throws: FileError, whose text begins with `what`, for anything else.
TrainerStatus trainer_status_from_json(const std::string& what, const std::string& json);

}  // namespace fovea::detail
