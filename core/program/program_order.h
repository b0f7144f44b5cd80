// How the rows of a program stand: sorted by what they say, and nothing said twice.
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

// Sorts them, each once. `moved[i]` becomes where source i went; where all stay where they are it
// becomes empty.
void put_in_order(std::vector<ProgramSource>& rows, std::vector<SourceId>& moved);

// All of a program. `of_jobs`: the numbers that its jobs have, where those in its pool are of
// outputs. `moved[i]` becomes where output i went; may be null.
Program in_order(Program program, std::vector<std::int64_t> of_jobs, std::vector<OutputId>* moved);

}  // namespace shw
