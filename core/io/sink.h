// Where new files are written. Everything is first written under a temporary name, made durable,
// and renamed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Status write(std::span<const std::byte> bytes) = 0;  // at the current end
  virtual Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual Status skip(std::uint64_t length) = 0;  // leaves a hole at the current end
  virtual std::uint64_t position() const = 0;     // the current end
  virtual Status finish() = 0;                    // fsync; a sink destroyed before is incomplete
};

// What a repair needs of a file system; the test double fails or stops at a chosen step.
class WritableDirectory {
 public:
  virtual ~WritableDirectory() = default;
  virtual const std::string& path() const = 0;
  virtual Result<std::unique_ptr<ByteSink>> create(
      const std::string& relative) = 0;  // fails if it exists
  // Copies a whole file of the outside: reflink where the file system can, else a copy that keeps
  // holes. Never a hard link.
  virtual Status copy_in(const std::string& source_path, const std::string& relative,
                         Progress* progress) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;  // replaces `to`
  virtual Status remove(const std::string& relative) = 0;
  virtual Status sync() = 0;  // fsync of the directory itself
};

// Makes the directory (its parent must exist) and fails if it is there already.
Result<std::unique_ptr<WritableDirectory>> create_directory(const std::string& path);
// One that exists, for an in-place change.
Result<std::unique_ptr<WritableDirectory>> open_writable_directory(const std::string& path);
// rename(2) of a finished directory to its final name (RENAME_NOREPLACE), then fsync of the parent.
Status publish_directory(const std::string& temporary, const std::string& final_path);
// Removes a half-made directory of ours with all below; refuses anything whose name does not hold
// `marker`.
Status discard_directory(const std::string& path, const std::string& marker);

// For tests: calls `decide(step name, path)` before every step; an Error is returned instead of
// doing it.
using WriteFault =
    std::function<std::optional<Error>(const std::string& step, const std::string& path)>;
std::unique_ptr<WritableDirectory> faulty_writable(std::unique_ptr<WritableDirectory> inner,
                                                   WriteFault decide);

}  // namespace shw
