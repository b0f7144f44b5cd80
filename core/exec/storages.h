// The bytes that a program's sources name: opened as they are asked for, the last one kept open.
// For one thread; what has to be decoded is shared with others, in memory or in files.
#pragma once

#include <memory>
#include <vector>

#include "core/exec/scratch_items.h"
#include "core/exec/source_sums.h"
#include "core/formats/decoded_items.h"
#include "core/program/program.h"

namespace shw {

class Storages {
 public:
  // `inputs` by the number that sources carry; they must outlive this. `sums` hear of what is read;
  // null: nobody does.
  Storages(const Program& program, std::vector<const Checkpoint*> inputs,
           std::shared_ptr<DecodedItems> decoded, std::shared_ptr<ScratchItems> on_disk = nullptr,
           SourceSums* sums = nullptr);
  // Byte 0 is the source's first.
  Result<std::shared_ptr<const ByteSource>> open(SourceId source);
  // The whole file that it lies in.
  Result<std::shared_ptr<const ByteSource>> open_file(SourceId source);
  SourceSums* sums() const { return sums_; }

 private:
  Status check_is_open(const ProgramSource& source) const;

  const Program& program_;
  std::vector<const Checkpoint*> inputs_;
  std::shared_ptr<DecodedItems> decoded_;
  std::shared_ptr<ScratchItems> on_disk_;
  SourceSums* sums_;
  std::uint32_t input_ = 0, file_ = 0;
  std::shared_ptr<const ByteSource> last_;
};

}  // namespace shw
