// Builds the program for tiles that were laid out: reads the headers of their inputs, lowers each
// tile into its rows of the program, checks those rows against its parts, and validates the whole.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/progress.h"
#include "core/transform/lower.h"

namespace shw {

// The chunks that written tiles are computed from.
struct NeededParts {
  std::vector<std::vector<std::uint8_t>> chunks;  // by input and chunk: true if needed
  std::vector<FromFile> files = {};
  // By tensor: true if every written tile is a single part, and so a single job.
  std::vector<std::uint8_t> is_one_job = {};
};

// Fills in the program and its outputs for all tiles that were laid out.
Status fill_program(const TargetState& all, const ResultFormat& form, const NeededParts& needed,
                    LoweredTarget& lowered, Progress* progress);

}  // namespace shw
