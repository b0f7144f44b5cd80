// The program version. CMakeLists.txt defines it; certificates and reports repeat it.
#pragma once

namespace shw {

extern const char* const kProgramVersion;

}  // namespace shw
