#pragma once

#include <cstddef>

/// The size of the largest block that this thread has requested from `operator new` since the variable was
/// last set to 0. A program gets the counting `operator new` by linking largest_block.cpp. The buffers of
/// tensors do not come from it.
extern constinit thread_local std::size_t largest_block;
