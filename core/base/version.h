// The program version. CMakeLists.txt defines it; certificates and reports repeat it.
#pragma once

namespace shw {

extern const char* const kProgramVersion;
// Of the source that it was built from: twelve digits, with a + where files had been changed;
// "unknown" outside of a clone.
extern const char* const kProgramCommit;
extern const char* const kProgramBuild;      // "Release, GNU 12.2.0, x86_64"
extern const char* const kProgramLibraries;  // "fmt 9.1.0, zlib 1.2.13, ..."
extern const bool kProgramHasCuda;           // its kernels are compiled

}  // namespace shw
