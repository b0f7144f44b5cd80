// Who does what where several workers make one folder: each file is written by one of them, and
// each source is read by one of them, whoever needs its bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/exec/folder_run.h"

namespace shw {

struct DealtFiles {
  std::vector<std::uint32_t> writer;  // by index in LaidOut::files: neighbours, as many bytes each
  std::vector<std::uint32_t> reader;  // by source of the program
};
// `there`, by index in LaidOut::files, needs nobody. A source goes to a worker who writes much of
// what is made of it, as long as that one has not got more than its share. The same on every
// worker.
DealtFiles deal_files(const FolderRun& run, const std::vector<bool>& there, std::size_t workers);

}  // namespace shw
