// Undoes torch's "stream.zstd" transform, with a limit on the decompressed size.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/zip/byte_stream.h"
#include "core/io/scratch.h"

namespace shw {

// kUnsupported, naming the transform, for anything but "stream.zstd" version 1.
Status check_transforms(std::span<const std::string> transforms, const std::string& file);

// Decompresses while reading sequentially; kUnsupported above `limit` bytes.
Result<std::unique_ptr<ByteStream>> zstd_stream(std::shared_ptr<const ByteSource> source,
                                                std::uint64_t offset, std::uint64_t length,
                                                std::uint64_t limit);

// Decompresses [offset, offset + length). kUnsupported above `limit` bytes, before decompressing if
// the frame announces its size.
Result<Bytes> read_zstd(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                        std::uint64_t limit, Progress* progress = nullptr);

// Decompresses into the front of a file; returns the number of bytes.
Result<std::uint64_t> decompress_zstd_to_file(std::shared_ptr<const ByteSource> source,
                                              std::uint64_t offset, std::uint64_t length,
                                              std::uint64_t limit, ScratchFile& to,
                                              const Progress* progress);

// How the middle of a source is handled: not readable, or decompressed again in each sequential
// read.
enum class MiddleAccess : std::uint8_t { kNothing, kStreamed };
// A source with the decompressed size that keeps only the first and last `keep` bytes: enough for
// the header of an item of any size. `asked` can cancel it but does not count its progress.
Result<std::shared_ptr<const ByteSource>> read_zstd_ends(std::shared_ptr<const ByteSource> source,
                                                         std::uint64_t offset, std::uint64_t length,
                                                         std::uint64_t limit, std::uint64_t keep,
                                                         MiddleAccess between, Progress* progress,
                                                         const Progress* asked = nullptr);

}  // namespace shw
