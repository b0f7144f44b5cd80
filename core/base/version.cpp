#include "core/base/version.h"

#include "commit.inc"  // SHW_COMMIT: cmake/commit.cmake writes it in every build

namespace shw {

const char* const kProgramVersion = SHW_VERSION;
const char* const kProgramCommit = SHW_COMMIT;
const char* const kProgramBuild = SHW_BUILD;
const char* const kProgramLibraries = SHW_LIBRARIES;
const bool kProgramHasCuda = SHW_HAVE_CUDA != 0;

}  // namespace shw
