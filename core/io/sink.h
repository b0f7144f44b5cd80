// Where the bytes of a new file go: anywhere in it from several threads, or front to back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

// What file systems share is made of blocks of it, on nearly all of them.
inline constexpr std::uint64_t kShareBlock = 4096;

// A new file of a store. What is never written reads as zeros and takes no disk where the store can
// leave holes.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  // Several threads may write at once, each bytes of its own.
  virtual Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  // Bytes of another file without a copy of them: both files then have the same blocks of the disk,
  // until one of them is written to. All three numbers are multiples of kShareBlock. False where
  // that cannot be had here: nothing is changed, and the bytes are to be written.
  virtual Result<bool> share_at(std::uint64_t offset, const ByteSource& source, std::uint64_t begin,
                                std::uint64_t length) = 0;
  // What is written so far is durable; for a file that grows line by line.
  virtual Status sync() = 0;
  // Gives it its length, makes it durable and closes it; one destroyed before is incomplete. No
  // other thread may write any more.
  virtual Status finish(std::uint64_t length) = 0;
};

// Bytes one after the other, as the writers of formats make them.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Status write(std::span<const std::byte> bytes) = 0;  // at the current end
  virtual Status skip(std::uint64_t length) = 0;               // leaves a hole at the current end
  virtual std::uint64_t position() const = 0;                  // the current end
  virtual Status finish() = 0;  // durable; a sink destroyed before is incomplete
};

// Through a buffer of 1 MiB. `name` is what errors call the file.
std::unique_ptr<ByteSink> sink_into(std::unique_ptr<OutputFile> file, std::string name);

}  // namespace shw
