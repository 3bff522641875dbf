#pragma once

/// Everything but the conversions to and from Eigen, which are in fovea/eigen.h.
#include "fovea/autograd/composed.h"
#include "fovea/autograd/dense.h"
#include "fovea/autograd/derivatives.h"
#include "fovea/autograd/gradcheck.h"
#include "fovea/autograd/graph.h"
#include "fovea/autograd/kernel_runs.h"
#include "fovea/autograd/mask.h"
#include "fovea/autograd/memory.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/parallel.h"
#include "fovea/autograd/rng.h"
#include "fovea/autograd/tensor.h"
#include "fovea/error.h"
#include "fovea/format.h"
