// A map bound to the tensors of one checkpoint, with its names and sizes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/maps/model_map.h"
#include "core/tensor/shape.h"

namespace shw {

enum class MapDirection : std::uint8_t { kForward, kBack };

struct MapTensor {
  std::string fqn;
  Extents shape;
};

// An operation with its sizes, and the shapes of one cell before it.
struct BoundOp {
  MapOp::Kind kind = MapOp::Kind::kJoin;
  std::size_t dim = 0;
  std::int64_t pieces = 1;
  Extents parts = {};  // extent along the dim of each tensor that is joined or split
  Extents view = {}, order = {};
  std::int64_t size = 0, to = 0;
  double value = 0;
  Dtype dtype = Dtype::kUnknown, from_dtype = Dtype::kUnknown;
};

struct BoundRow {
  std::size_t row = 0;  // in ModelMap::rows
  std::vector<std::string> to;
  Extents lead = {};                           // sizes of the stacked counters
  std::vector<std::vector<std::string>> from;  // by cell of `lead`, the last counter fastest
  std::vector<BoundOp> ops = {};
  std::vector<Extents> from_shapes = {}, to_shapes = {};  // of one cell, without `lead`
};

struct BoundMap {
  MapDirection way = MapDirection::kForward;
  std::vector<BoundRow> rows;
  // Saved name, and name as the map reads it.
  std::vector<std::pair<std::string, std::string>> stripped = {};
  std::vector<std::pair<std::string, std::string>> copies =
      {};  // to be made: the copy and its original
  // Copies that the result leaves out: name of the copy, name of its original.
  std::vector<std::pair<std::string, std::string>> omitted_copies = {};
  std::vector<std::string> left_out = {}, without_row = {};
  // Parts of incomplete stacks (ModelFacts::allows_gaps).
  std::vector<std::string> incomplete = {};
};

}  // namespace shw
