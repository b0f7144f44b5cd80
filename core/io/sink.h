// Writers of a new file: positional from several threads, or sequential.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

// Block size for sharing, which nearly all file systems use.
inline constexpr std::uint64_t kShareBlock = 4096;

// A new file of a store. Ranges that are never written read as zeros, and are holes if the store
// supports them.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  // Thread-safe for ranges that do not overlap.
  virtual Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  // Shares blocks of another file (reflink) instead of copying them. All three numbers must be
  // multiples of kShareBlock. Returns false if sharing is not possible: the file is unchanged, and
  // the caller writes the bytes.
  virtual Result<bool> reflink_at(std::uint64_t offset, const ByteSource& source,
                                  std::uint64_t begin, std::uint64_t length) = 0;
  // Makes all bytes written so far durable; for files that grow line by line.
  virtual Status sync() = 0;
  // Sets the length, makes the file durable and closes it. A file destroyed without finish() is
  // incomplete. No other thread may be writing.
  virtual Status finish(std::uint64_t length) = 0;
};

// A sequential writer, as the encoders of formats need.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Status write(std::span<const std::byte> bytes) = 0;  // appends
  virtual Status skip(std::uint64_t length) = 0;               // appends a hole
  virtual std::uint64_t position() const = 0;                  // bytes so far
  virtual Status finish() = 0;  // makes the file durable; a sink destroyed without it is incomplete
};

// A buffered sink (1 MiB). `name` is used in errors.
std::unique_ptr<ByteSink> make_buffered_sink(std::unique_ptr<OutputFile> file, std::string name);

}  // namespace shw
