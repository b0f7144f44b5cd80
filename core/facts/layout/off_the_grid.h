// Layouts (a mesh, placements) whose tensors were saved whole, but not on the grid that the spec
// gives: a framework's flat buckets cut their rows. Along the axes on which a rank held something
// else than its part, the place of a survivor is not where the spec would put it.
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/facts/check_input.h"

namespace shw {

class OffTheGrid {
 public:
  explicit OffTheGrid(const CheckInput& input) : input_(input) {}
  bool operator()(const SpecEntry& entry, std::size_t axis);

 private:
  void look();
  void look_at(const SpecEntry& entry, ChunkId chunk);

  const CheckInput& input_;
  bool looked_ = false;
  std::map<std::string, std::set<std::size_t>> axes_;  // of a layout
};

}  // namespace shw
