// Norm, zeros and non-finite elements of every float tensor of a checkpoint, each element read
// once.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/tensor/statistics.h"

namespace shw::verbs {

struct TensorNumbers {
  bool is_read = false;        // a float tensor of which an element was read
  std::uint64_t elements = 0;  // number of elements read
  std::uint64_t nan = 0, infinite = 0, zero = 0;
  double squares = 0;        // sum over the finite elements
  std::uint64_t absent = 0;  // of a float tensor: elements that are missing or cannot be read
};

struct CheckpointNumbers {
  std::vector<TensorNumbers> tensors;   // by index of TensorId
  std::size_t partly_read_tensors = 0;  // float tensors of which an element could not be read
};

std::vector<TensorId> float_tensors(const Checkpoint& checkpoint);
// The sum of squares of the finite elements, which follows from mean and variance.
double sum_of_squares(const Statistics& statistics);

// Fails with kCancelled, or where counting fails; unreadable elements are left out.
Result<CheckpointNumbers> compute_tensor_numbers(const Checkpoint& checkpoint, Progress* progress);

}  // namespace shw::verbs
