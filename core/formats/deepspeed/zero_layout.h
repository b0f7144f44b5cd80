// Where each parameter of a group lies in the flat partitions of its ranks.
//
// Stages 1 and 2: the parameters of a group follow one another (each may have alignment padding
// behind it), and the whole is cut into partitions of equal length, one per rank.
// Stage 3: every parameter is cut by itself, into ceil(elements / ranks) per rank; the cuts of one
// rank follow one another.
#pragma once

#include "core/formats/deepspeed/zero_states.h"

namespace shw {

// Elements [first, first + count) of a parameter, at `at` of a rank's partition of `group`.
struct ZeroPart {
  std::uint32_t rank = 0;
  std::uint32_t group = 0;
  std::int64_t at = 0, first = 0, count = 0;
};

struct ZeroParameter {
  std::string name;
  Extents shape;
  std::uint32_t group = 0;  // whose states it has; the first, where it lies in several
  std::vector<ZeroPart> parts = {};
};

// `partition`: elements per rank, padding included. `needed`: elements that all parameters take.
struct ZeroLayout {
  std::vector<ZeroParameter> parameters = {};
  std::int64_t needed = 0;
};
ZeroLayout lay_out_partitions(std::span<const ZeroShape> shapes,
                              std::span<const std::int64_t> alignment, std::uint32_t group,
                              std::int64_t ranks, std::int64_t partition);

// `lengths`: elements of each flat group of one rank, of which `first_group` is the first.
ZeroLayout lay_out_cuts(std::span<const ZeroShape> shapes, std::span<const std::int64_t> lengths,
                        std::uint32_t first_group, std::int64_t ranks);

}  // namespace shw
