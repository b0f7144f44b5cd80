// Write buffer that joins small adjacent writes to a new file. A system call takes as long as
// copying some thousand bytes.
#pragma once

#include <vector>

#include "core/base/bytes.h"
#include "core/io/sink.h"

namespace shw {

// For one thread and for ranges that do not overlap. Small writes reach the file only in flush();
// long ones are written at once.
class CoalescingFile final : public OutputFile {
 public:
  explicit CoalescingFile(OutputFile& file) : file_(file) {}
  Status write_at(std::uint64_t offset, BytesView bytes) override;
  Result<bool> reflink_at(std::uint64_t offset, const ByteSource& source, std::uint64_t begin,
                          std::uint64_t length) override {
    return file_.reflink_at(offset, source, begin, length);
  }
  Status sync() override;
  Status finish(std::uint64_t length) override;
  // Writes the buffered runs in file order. The buffer is then empty and can be reused.
  Status flush();

 private:
  struct Run {
    std::uint64_t offset = 0;
    std::size_t begin = 0, length = 0;  // in held_
  };
  OutputFile& file_;
  std::vector<Run> runs_;
  Bytes held_, joined_;
};

}  // namespace shw
