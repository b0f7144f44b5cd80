// Small runs of a new file on their way into it: those that follow each other are written together.
// A call to the system takes as long as copying four of a thousand bytes.
#pragma once

#include <vector>

#include "core/base/bytes.h"
#include "core/io/sink.h"

namespace shw {

// For one thread, and for runs that do not overlap; nothing is in the file before flush(). What is
// long is written at once.
class GatheredFile final : public OutputFile {
 public:
  explicit GatheredFile(OutputFile& file) : file_(file) {}
  Status write_at(std::uint64_t offset, BytesView bytes) override;
  Result<bool> share_at(std::uint64_t offset, const ByteSource& source, std::uint64_t begin,
                        std::uint64_t length) override {
    return file_.share_at(offset, source, begin, length);
  }
  Status sync() override;
  Status finish(std::uint64_t length) override;
  // In the order of the file. What is held then is nothing, and may be used again.
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
