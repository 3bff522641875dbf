#pragma once

#include <cstddef>

/// The largest block that this thread has asked `operator new` for, since it was last set to 0. A program
/// that links largest_block.cpp has an `operator new` that keeps count; arrays of tensors do not come from
/// it.
extern constinit thread_local std::size_t largest_block;
