// From tiles that were laid out to the program that makes them: the headers of what they are made
// of are read, then each tile is lowered to the rows that it has in the program, which are held
// against its parts as they stand there; then all of it is proved.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/progress.h"
#include "core/transform/lower.h"

namespace shw {

// What tiles that are made are taken from, and no other.
struct NeededParts {
  std::vector<std::vector<std::uint8_t>> chunks;  // by input and chunk: whether it is needed
  std::vector<FromFile> files = {};
  // By tensor: every tile that is made is one part, and so one job.
  std::vector<std::uint8_t> is_one_job = {};
};

// Fills in the program, and where its outputs are, of what is laid out.
Status fill_program(const TargetState& all, const WantedForm& form, const NeededParts& needed,
                    LoweredTarget& lowered, Progress* progress);

}  // namespace shw
