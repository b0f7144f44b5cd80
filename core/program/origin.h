// Where one element of an output comes from, worked out the slow and obvious way: what a lowering
// says is held against what was wanted of it.
#pragma once

#include <optional>

#include "core/program/program.h"

namespace shw {

struct Origin {
  const ProgramSource* source = nullptr;  // null: a constant
  // Of the source's own bytes: where the element begins. Counted from the front of the file where
  // the source lies there as it is used.
  std::int64_t byte = 0;
  const ProgramJob* job = nullptr;
};

// `at` is the element's place in the output that the jobs fill. Nothing where none makes it.
std::optional<Origin> origin_of(const Program& program, JobRange jobs, ExtentsView at);

}  // namespace shw
