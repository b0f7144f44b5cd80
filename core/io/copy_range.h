#pragma once

#include "core/base/progress.h"
#include "core/io/read_through.h"
#include "core/io/sink.h"
#include "core/io/source.h"

namespace shw {

// The least run that is worth sharing (reflink): sharing takes 4 to 60 us whatever the length,
// copying 1 MiB takes milliseconds on a disk, and a 2 KiB alignment gap is 0.2 % of 1 MiB.
inline constexpr std::uint64_t kMinShared = std::uint64_t{1} << 20;

// Bytes of padding so that offset `begin` of the source and offset `at` of the new file are equal
// modulo kShareBlock. Only then can the two files share blocks.
constexpr std::uint64_t reflink_alignment_padding(std::uint64_t begin, std::uint64_t at) {
  return (begin - at) % kShareBlock;
}

// Copies a byte range of a file to offset `at` of a new file. Long aligned ranges are shared if the
// file system supports it; other ranges are copied, and holes stay holes. If `passing` is not null
// it receives the copied bytes, or nothing if any of the bytes are shared.
Status copy_range(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                  OutputFile& out, std::uint64_t at, Progress* progress,
                  const ExtentVisitor* passing = nullptr);

// Writes `bytes`, which were read at `offset` of the source, or shares their blocks.
Status reflink_or_write(const ByteSource& source, std::uint64_t offset, BytesView bytes,
                        OutputFile& out, std::uint64_t at);

// How many bytes of a range at `offset` of one file and at `at` of another can be shared if the
// file system supports sharing.
std::uint64_t shared_in(std::uint64_t offset, std::uint64_t length, std::uint64_t at);

}  // namespace shw
