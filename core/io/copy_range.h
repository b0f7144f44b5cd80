#pragma once

#include "core/base/progress.h"
#include "core/io/read_through.h"
#include "core/io/sink.h"
#include "core/io/source.h"

namespace shw {

// A run of bytes that is worth a place at which it can be shared: to share takes 4 to 60 us however
// long it is, to copy a MiB takes milliseconds of a disk, and a gap of 2 KiB is 0.2 % of a MiB.
inline constexpr std::uint64_t kLeastShared = std::uint64_t{1} << 20;

// How many bytes a run that begins at `begin` of a source, and that would stand at `at` of a new
// file, has to move up so that both are the same place of a block.
constexpr std::uint64_t to_share_blocks(std::uint64_t begin, std::uint64_t at) {
  return (begin - at) % kShareBlock;
}

// Bytes of a file at `at` of a new one. Where they are many, and the same places of blocks in both,
// the files share the blocks if the file system can; else they are copied, and holes stay holes.
// `passing`, where it is not null, is given them on the way, or nothing if any of them are shared.
Status copy_range(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                  OutputFile& out, std::uint64_t at, Progress* progress,
                  const RangeParts* passing = nullptr);

// The same of bytes that have been read from there, at `offset`.
Status share_or_write(const ByteSource& source, std::uint64_t offset, BytesView bytes,
                      OutputFile& out, std::uint64_t at);

// How many bytes of a run that begins at `offset` of a file, and is to stand at `at` of another,
// the two share if their file system can.
std::uint64_t shared_in(std::uint64_t offset, std::uint64_t length, std::uint64_t at);

}  // namespace shw
