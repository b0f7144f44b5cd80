// The canonical order of program rows: sorted by content, without duplicates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "core/program/program.h"

namespace shw {

inline auto key_of(const ProgramSource& source) {
  return std::tuple(source.input, source.file, source.offset, source.length, source.form,
                    source.chunk);
}

// Sorts and merges sources. `moved[i]`: new id of source i; empty if no id
// changes.
void put_in_order(std::vector<ProgramSource>& rows, std::vector<SourceId>& moved);

// Puts a whole program in canonical order. `of_jobs`: the numbers of the jobs, if the program's
// pool holds those of outputs only. `moved[i]`: new id of output i; may be null.
Program in_order(Program program, std::vector<std::int64_t> of_jobs, std::vector<OutputId>* moved);

}  // namespace shw
