// The version of this program: CMakeLists.txt says it, certificates and answers repeat it.
#pragma once

namespace shw {

extern const char* const kProgramVersion;

}  // namespace shw
