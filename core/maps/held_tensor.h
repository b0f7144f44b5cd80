// A converted tensor in memory, and how its rows were joined.
#pragma once

#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

struct HeldTensor {
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  Bytes bytes;  // row-major
};

// How the rows of one cell were joined of several tensors; no parts where they were not.
struct RowLayout {
  std::size_t lead = 0;                      // leading dims that stack cells
  std::vector<std::string> counters = {};    // of these dims: "layer", "expert"
  std::size_t dim = 0;                       // that is joined, behind `lead`
  std::vector<std::string> part_names = {};  // "q_proj", for people
  Extents parts = {};                        // rows of each
  std::int64_t pieces = 1;
  std::int64_t head_dim = 0;      // 0: not known
  std::int64_t rotary_begin = 0;  // rows of each head that turn; none: all of them
  std::int64_t rotary_rows = 0;
  std::int64_t padding_from = 0;  // rows from here on are padding, of any value; 0: none are
};

}  // namespace shw
