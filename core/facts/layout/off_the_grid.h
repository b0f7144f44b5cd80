// Layouts (mesh and placements) whose complete tensors are not on the spec's grid, because a
// framework's flat buckets split their rows. Along the affected axes a retained chunk may not be
// placed by the spec.
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/facts/check_input.h"

namespace shw {

class OffGridChunks {
 public:
  explicit OffGridChunks(const CheckInput& input) : input_(input) {}
  bool operator()(const SpecEntry& entry, std::size_t axis);

 private:
  void find_off_grid_chunks();
  void add_chunk(const SpecEntry& entry, ChunkId chunk);

  const CheckInput& input_;
  bool looked_ = false;
  std::map<std::string, std::set<std::size_t>> axes_;  // by layout
};

}  // namespace shw
