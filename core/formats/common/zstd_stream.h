// Undoes torch's "stream.zstd" transform, with a bound on what may come out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/byte_stream.h"
#include "core/io/scratch.h"

namespace shw {

// Nothing, or kUnsupported naming the transform: only "stream.zstd" of version 1 is known.
Status check_transforms(std::span<const std::string> transforms, const std::string& file);

// Decompressed while they are read from front to back; more than `limit` of them is kUnsupported.
Result<std::unique_ptr<ByteStream>> zstd_stream(std::shared_ptr<const ByteSource> source,
                                                std::uint64_t offset, std::uint64_t length,
                                                std::uint64_t limit);

// The decompressed bytes of [offset, offset + length). More than `limit` of them is kUnsupported,
// before they are made where the frame announces it.
Result<Bytes> read_zstd(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                        std::uint64_t limit, Progress* progress = nullptr);

// The same into a file, from its front; how many bytes that were.
Result<std::uint64_t> zstd_into(std::shared_ptr<const ByteSource> source, std::uint64_t offset,
                                std::uint64_t length, std::uint64_t limit, ScratchFile& to,
                                const Progress* progress);

// What lies between the two ends of something: nothing that can be read, or what is decompressed
// anew while it is read from front to back.
enum class Between : std::uint8_t { kNothing, kStreamed };
// A source with the decompressed size of which the first and the last `keep` bytes are held: enough
// for the header of an item, whatever its size. `asked` may stop it, and hears nothing of it.
Result<std::shared_ptr<const ByteSource>> read_zstd_ends(std::shared_ptr<const ByteSource> source,
                                                         std::uint64_t offset, std::uint64_t length,
                                                         std::uint64_t limit, std::uint64_t keep,
                                                         Between between, Progress* progress,
                                                         const Progress* asked = nullptr);

}  // namespace shw
