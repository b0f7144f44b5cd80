// Computes the source of a single output element by a simple, slow method: the reference against
// which lowerings are tested.
#pragma once

#include <optional>

#include "core/program/program.h"

namespace shw {

struct Origin {
  const ProgramSource* source = nullptr;  // null: a constant
  // Offset of the element within the source's elements. For stored sources: offset within the
  // file.
  std::int64_t byte = 0;
  const ProgramJob* job = nullptr;
};

// `at` is the position in the output that the jobs fill. nullopt if no job covers it.
std::optional<Origin> origin_of(const Program& program, JobRange jobs, ExtentsView at);

}  // namespace shw
