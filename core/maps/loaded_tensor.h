// A converted tensor in memory, and how its rows were joined.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/checked.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

struct LoadedTensor {
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  Bytes bytes;  // row-major
};

// Bytes of a tensor's elements; saturates, because sizes come from files.
inline std::uint64_t bytes_when_loaded(Dtype dtype, const Extents& shape) {
  const auto elements = volume(shape);
  const auto bytes = elements ? checked_mul(*elements, std::int64_t{size_of(dtype)}) : std::nullopt;
  return bytes ? static_cast<std::uint64_t>(*bytes) : UINT64_MAX;
}

// How the rows of one cell were joined from several tensors; `parts` is empty if they were not.
struct RowLayout {
  std::size_t lead = 0;                      // number of leading dims that stack cells
  std::vector<std::string> counters = {};    // names of these dims: "layer", "expert"
  std::size_t dim = 0;                       // the joined dim, after `lead`
  std::vector<std::string> part_names = {};  // "q_proj", for messages
  Extents parts = {};                        // number of rows of each part
  std::int64_t pieces = 1;
  std::int64_t head_dim = 0;      // 0: unknown
  std::int64_t rotary_begin = 0;  // first row of each head with rotary positions
  std::int64_t rotary_rows = 0;
  std::int64_t padding_from = 0;  // rows from here on are padding with any value; 0: no padding
};

}  // namespace shw
