#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// Records of TensorBoard's event files: TFRecords (tensorflow.org/tutorials/load_data/tfrecord) that hold
// protocol buffers (tensorflow/core/util/event.proto, framework/summary.proto), of which scalars take four
// fields.
namespace fovea::detail {

struct Scalar {
  std::string_view tag;
  double value;
};

/// The record that a file begins with. Times are seconds since 1970.
std::string tensorboard_beginning(double time);

/// The record of some scalars at a step. Its length does not depend on the time or the values.
std::string tensorboard_record(double time, std::int64_t step, std::span<const Scalar> scalars);

}  // namespace fovea::detail
