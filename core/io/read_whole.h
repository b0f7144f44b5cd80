// Size limits for text files that are read whole: plans, certificates, journals, indexes.
#pragma once

#include <string>

#include "core/io/source.h"

namespace shw {

// The certificate of a checkpoint with 4 million chunks takes about 600 MB.
inline constexpr std::uint64_t kMaxTextFile = std::uint64_t{1} << 30;
// An index of 4 million chunks takes about 1.3 GB.
inline constexpr std::uint64_t kMaxIndexFile = std::uint64_t{16} << 30;

// Reads all of a source. A larger one is kDamaged before memory is allocated, because a sparse file
// of 1 TB costs its author nothing.
Result<Bytes> read_whole(const ByteSource& source, std::uint64_t most = kMaxTextFile);
Result<std::string> read_whole_text(const ByteSource& source, std::uint64_t most = kMaxTextFile);

// Reads a file, or a pipe ("--spec <(jq ...)") until it ends. A pipe can be read only once.
Result<std::string> read_whole_text(const std::string& path, std::uint64_t most = kMaxTextFile);

}  // namespace shw
