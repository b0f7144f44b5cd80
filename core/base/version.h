// The program version. CMakeLists.txt defines it; certificates and reports repeat it.
#pragma once

namespace shw {

extern const char* const kProgramVersion;
// Commit of the source: twelve hex digits, with "+" if files were modified; "unknown" outside of a
// git clone.
extern const char* const kProgramCommit;
extern const char* const kProgramBuild;      // "Release, GNU 12.2.0, x86_64"
extern const char* const kProgramLibraries;  // "fmt 9.1.0, zlib 1.2.13, ..."
extern const bool kProgramHasCuda;           // true if the CUDA kernels are compiled in

}  // namespace shw
