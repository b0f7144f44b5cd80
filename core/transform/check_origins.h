// Checks a program against the parts that it was lowered from. Both are linear in each dim, so they
// agree everywhere if they agree on a part's first element, the next one along each dim, and its
// last.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/formats/items/chunk_storage.h"
#include "core/program/program.h"
#include "core/transform/target_state.h"

namespace shw {

// Storage of a chunk, or of a range in a file, with strides in the part's coordinates.
struct PartStorage {
  std::uint32_t input = 0;
  std::string_view file;  // name in the checkpoint, or in the part
  ChunkStorage lies;
  std::uint32_t chunk = 0;  // if it must be decoded
};

// Checks that `jobs` fill `part` of `tile` from its recorded origin. `storage` is null for a
// constant. An error is a bug in this program and names the tensor.
Status check_origins(const Program& program, JobRange jobs, const Part& part, const Box& tile,
                     const PartStorage* storage, std::string_view fqn);
// Checks one output of a complete program.
Status check_origins(const Program& program, OutputId output, const Part& part, const Box& tile,
                     const PartStorage* storage, std::string_view fqn);

}  // namespace shw
