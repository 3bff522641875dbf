#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// Records of TensorBoard's event files: TFRecords (tensorflow.org/tutorials/load_data/tfrecord) that hold
// protocol buffers (tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto).
namespace fovea::detail {

struct Scalar {
  std::string_view tag;
  double value;
};

/// The record with which a file begins. Times are seconds since 1970.
std::string tensorboard_beginning(double time);

/// The record of scalars at a step. Its length does not depend on the time or the values.
std::string tensorboard_record(double time, std::int64_t step, std::span<const Scalar> scalars);

/// Whether bytes are whole records that match their checksums.
bool are_tensorboard_records(std::string_view bytes);

}  // namespace fovea::detail
