// Rows of a tensor as float32 numbers, whatever tiles and floating dtype it has.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/result.h"
#include "core/facts/values/quant_numbers.h"
#include "core/model/checkpoint.h"

namespace shw {

// A tensor that can be read, with the checkpoint that it is of.
struct ReadableTensor {
  std::shared_ptr<const Checkpoint> checkpoint;
  TensorId tensor{};
  Extents shape = {};
  Dtype dtype = Dtype::kUnknown;
};
ReadableTensor readable(std::shared_ptr<const Checkpoint> checkpoint, TensorId tensor);

// The elements of the box, row-major. kDamaged where they cannot all be read; kUnsupported where
// they are no floating-point numbers.
Result<std::vector<float>> read_floats(const ReadableTensor& tensor, const Box& box);
// As stored.
Result<Bytes> read_stored(const ReadableTensor& tensor, const Box& box);

// [rows, columns] becomes [columns, rows].
std::vector<float> turned_matrix(const std::vector<float>& from, std::size_t rows,
                                 std::size_t columns);

}  // namespace shw
