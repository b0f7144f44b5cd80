// The bytes that a program's sources name: opened as they are asked for, the last one kept open.
// For one thread.
#pragma once

#include <memory>
#include <vector>

#include "core/formats/box_reader.h"
#include "core/program/program.h"

namespace shw {

class Storages {
 public:
  // `inputs` by the number that sources carry; they must outlive this.
  Storages(const Program& program, std::vector<const Checkpoint*> inputs);
  // Byte 0 is the source's first.
  Result<std::shared_ptr<const ByteSource>> open(SourceId source);
  // The most that items which had to be decoded whole took at once: memory that no limit bounds.
  std::uint64_t decoded_peak() const;

 private:
  const Program& program_;
  std::vector<const Checkpoint*> inputs_;
  std::vector<DecodedChunks> decoded_;
  std::uint32_t input_ = 0, file_ = 0;
  std::shared_ptr<const ByteSource> last_;
};

}  // namespace shw
