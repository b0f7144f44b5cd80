// Reads rows of a tensor as float32, for any chunks and floating-point dtype.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/result.h"
#include "core/facts/values/quant_numbers.h"
#include "core/model/checkpoint.h"

namespace shw {

// A readable tensor and its checkpoint.
struct ReadableTensor {
  std::shared_ptr<const Checkpoint> checkpoint;
  TensorId tensor{};
  Extents shape = {};
  Dtype dtype = Dtype::kUnknown;
};
ReadableTensor readable(std::shared_ptr<const Checkpoint> checkpoint, TensorId tensor);

// The elements of the box, row-major. kDamaged if they cannot all be read, kUnsupported if they are
// not floating-point numbers.
Result<std::vector<float>> read_floats(const ReadableTensor& tensor, const Box& box);
// The elements of the box in the stored dtype.
Result<Bytes> read_stored(const ReadableTensor& tensor, const Box& box);

// Transposes [rows, columns] to [columns, rows].
std::vector<float> transposed_matrix(const std::vector<float>& from, std::size_t rows,
                                     std::size_t columns);

}  // namespace shw
