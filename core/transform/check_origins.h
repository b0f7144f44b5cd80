// Holds a program against the parts that it was lowered from. Both say of every element of a part
// where it comes from, in steps of one size along each dim: they agree everywhere if they agree on
// its first element, on the next one along each dim, and on its last.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/formats/box_reader.h"
#include "core/program/program.h"
#include "core/transform/target_state.h"

namespace shw {

// The elements of a chunk, or of a payload in a file, as parts count them.
struct PartStorage {
  std::uint32_t input = 0;
  std::string_view file;  // of the checkpoint, or of the part
  ChunkStorage lies;
  std::uint32_t chunk = 0;  // where it has to be decoded
};

// `part` lies in the tile `tile`, which is the output of the jobs. `storage`: null for a constant.
// An error is a mistake of ours, and names the tensor.
Status check_origins(const Program& program, JobRange jobs, const Part& part, const Box& tile,
                     const PartStorage* storage, std::string_view fqn);
// The same of a program that is complete.
Status check_origins(const Program& program, OutputId output, const Part& part, const Box& tile,
                     const PartStorage* storage, std::string_view fqn);

}  // namespace shw
