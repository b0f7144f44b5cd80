// The program version. CMakeLists.txt defines it; certificates and reports repeat it.
#pragma once

#include <string_view>

namespace shw {

// Version of the JSON that the program writes: assets/schema.
inline constexpr std::string_view kJsonSchema = "shardwright/2";
// Version 2 has other keys in the evidence of findings. Plans, certificates and records of lost
// elements of version 1 are read as those of version 2.
constexpr bool is_readable_schema(std::string_view schema) {
  return schema == kJsonSchema || schema == "shardwright/1";
}

extern const char* const kProgramVersion;
// Commit of the source: twelve hex digits, with "+" if files were modified; "unknown" outside of a
// git clone.
extern const char* const kProgramCommit;
extern const char* const kProgramBuild;      // "Release, GNU 12.2.0, x86_64"
extern const char* const kProgramLibraries;  // "fmt 9.1.0, zlib 1.2.13, ..."
extern const bool kProgramHasCuda;           // true if the CUDA kernels are compiled in

}  // namespace shw
