// The text of --version: the commit, features of this build, and its libraries.
#include <fmt/core.h>

#include <string>

#include "app/cli/options.h"
#include "core/base/version.h"
#include "core/cluster/mpi.h"
#include "core/hdf5/hdf5_writer.h"

namespace shw::cli {

std::string version_text() {
  auto word = [](bool has) { return has ? "yes" : "no"; };
  return fmt::format(
      "shardwright {}\n"
      "commit     {}\n"
      "build      {}\n"
      "options    CUDA {}, MPI {}, HDF5 files are written {}\n"
      "libraries  {}",
      kProgramVersion, kProgramCommit, kProgramBuild, word(kProgramHasCuda), word(has_mpi()),
      word(has_hdf5()), kProgramLibraries);
}

std::string version_json() {
  auto word = [](bool has) { return has ? "true" : "false"; };
  return fmt::format(
      "{{\"schema\": \"{}\", \"version\": \"{}\", \"commit\": \"{}\", \"build\": "
      "\"{}\", \"cuda\": {}, \"mpi\": {}, \"hdf5\": {}, \"libraries\": \"{}\"}}\n",
      kJsonSchema, kProgramVersion, kProgramCommit, kProgramBuild, word(kProgramHasCuda),
      word(has_mpi()), word(has_hdf5()), kProgramLibraries);
}

}  // namespace shw::cli
