// Opens the sources of a program on demand and keeps the last one open. Not thread-safe; decoded
// items are shared between instances, in memory or in files.
#pragma once

#include <memory>
#include <vector>

#include "core/exec/source_checksum_verifier.h"
#include "core/exec/spill_files.h"
#include "core/formats/items/decoded_items.h"
#include "core/program/program.h"

namespace shw {

class SourceOpener {
 public:
  // `inputs`: indexed by the input number of sources; must outlive this object. `sums` receives all
  // reads; may be null.
  SourceOpener(const Program& program, std::vector<const Checkpoint*> inputs,
               std::shared_ptr<DecodedItems> decoded, std::shared_ptr<SpillFiles> on_disk = nullptr,
               SourceChecksumVerifier* sums = nullptr);
  // Offset 0 is the first byte of the source.
  Result<std::shared_ptr<const ByteSource>> open(SourceId source);
  // The whole file that contains the source.
  Result<std::shared_ptr<const ByteSource>> open_file(SourceId source);
  SourceChecksumVerifier* sums() const { return sums_; }

 private:
  Status check_is_open(const ProgramSource& source) const;

  const Program& program_;
  std::vector<const Checkpoint*> inputs_;
  std::shared_ptr<DecodedItems> decoded_;
  std::shared_ptr<SpillFiles> on_disk_;
  SourceChecksumVerifier* sums_;
  std::uint32_t input_ = 0, file_ = 0;
  std::shared_ptr<const ByteSource> last_;
};

}  // namespace shw
