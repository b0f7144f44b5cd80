// DTensors in a file of torch.save: each is the part of one rank, and says of what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/common/side_tensors.h"
#include "core/model/finding.h"

namespace shw {

struct HeldPart {
  SideSharding sharding;
  Box box;                // of the whole
  bool is_placed = true;  // false: its size alone is known
};

// Not placed where mesh and placements give no box of that size (rows of tensor and data parallel
// ranks, cut in strides). Nothing where it is no part either.
std::optional<HeldPart> held_part(SideSharding sharding, ExtentsView local);

// Those of one file that are not the whole.
class PartsHeld {
 public:
  void add(const std::string& fqn, const HeldPart& part);
  std::optional<Finding> finding(const std::string& path) const;

 private:
  std::vector<std::string> subjects_;
  std::optional<HeldPart> example_;
  std::int64_t held_ = 0, all_ = 0;  // elements
};

}  // namespace shw
