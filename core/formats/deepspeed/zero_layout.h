// Places of a group's parameters in the flat partitions of its ranks.
//
// Stages 1 and 2: parameters of a group are concatenated (with optional alignment
// padding), then cut into one partition of equal length per rank. Stage 3: each
// parameter is cut into ceil(elements / ranks) per rank, and a rank's cuts are
// concatenated.
#pragma once

#include "core/formats/deepspeed/zero_states.h"

namespace shw {

// Elements [first, first + count) of a parameter, at offset `at` of a rank's partition of `group`.
struct ZeroPart {
  std::uint32_t rank = 0;
  std::uint32_t group = 0;
  std::int64_t at = 0, first = 0, count = 0;
};

// The ranks that share a group's flat tensor: its partition number p is that of rank
// first + p * step.
struct PartitionRanks {
  std::int64_t count = 0, first = 0, step = 1;
};

struct ZeroParameter {
  std::string name;
  std::string name_in_files;  // as ZeroShape
  Extents shape;
  std::uint32_t group = 0;  // the group of its states; the first one if the parameter spans several
  std::vector<ZeroPart> parts = {};
};

// `partition`: elements per rank including padding. `needed`: total elements of parameters.
struct ZeroLayout {
  PartitionRanks ranks = {};
  std::vector<ZeroParameter> parameters = {};
  std::int64_t needed = 0;
};
ZeroLayout lay_out_partitions(std::span<const ZeroShape> shapes,
                              std::span<const std::int64_t> alignment, std::uint32_t group,
                              const PartitionRanks& ranks, std::int64_t partition);

// `lengths`: elements of each flat group of one rank, starting with `first_group`.
ZeroLayout lay_out_stage3(std::span<const ZeroShape> shapes, std::span<const std::int64_t> lengths,
                          std::uint32_t first_group, std::int64_t ranks);

}  // namespace shw
