#pragma once

#include "fovea/fovea.h"

/// Fovea and Eigen multiply the same random matrices alike, and Eigen's own work is right.
bool model_works(fovea::Rng& rng);
