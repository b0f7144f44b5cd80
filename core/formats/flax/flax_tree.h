// The tree of arrays in a file of flax.serialization (msgpack). Elements are skipped: only the
// bytes around them are read.
//
//   file    = map
//   value   = map | array of msgpack | text | number | bool | nil | bytes | EXT 1 ndarray
//           | EXT 2 complex | EXT 3 ndarray (a scalar) | chunked
//   ndarray = [shape (array of integers), dtype (text: "float32"), elements (bytes)]
//   chunked = {"__msgpack_chunked_array__": true, "shape": {"0": N, ...},
//              "chunks": {"0": EXT 1 ndarray of one dimension, ...}}     arrays above 1 GiB
//
// Names are the keys on the path, joined by dots. Elements are row-major, in the writer's byte
// order.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/io/source.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

// Elements [first, first + count) of the array, row-major.
struct FlaxRun {
  std::int64_t first = 0, count = 0;
  std::uint64_t offset = 0;  // in the file
};
struct FlaxArray {
  std::string name;
  std::string type;  // "bfloat16", as in the file
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  std::vector<FlaxRun> runs;
  std::uint64_t at = 0;
  std::string problem = {};  // why it cannot be read
};
struct FlaxTree {
  std::vector<FlaxArray> arrays;
  std::vector<std::pair<std::string, std::string>> values;  // pickle opcodes, by name
};

Result<FlaxTree> read_flax_tree(const ByteSource& source);
// True if the bytes begin such a tree: a map whose first key is text.
bool begins_as_flax(BytesView first);

}  // namespace shw
