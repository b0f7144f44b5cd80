// Proves every tile of what was written: those that were made by the fingerprint of what was read
// for them, those that stayed by the hash of the item that they were.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/progress.h"
#include "core/exec/folder_run.h"
#include "core/repair/proof/digests.h"
#include "core/transform/lower.h"

namespace shw {

class ChecksumMismatches;

// Which of what was laid out a tile of an entry is, as WrittenFolder::made counts them. Outputs
// have the tiles of an entry in the order of its target.
class MadePlaces {
 public:
  MadePlaces(const Outputs& outputs, const LaidOut& laid_out);

  std::uint32_t tiles_of(std::uint32_t entry) const;
  // Nothing where its item comes along as it is.
  std::optional<std::uint32_t> find(std::uint32_t entry, std::uint32_t tile) const;

 private:
  static constexpr std::uint32_t kKept = 0xFFFFFFFFu;
  std::vector<std::size_t> first_;   // by entry, in made_
  std::vector<std::uint32_t> made_;  // by entry and tile
};

struct ProvingTarget {
  const TargetState& all;
  const WantedForm& form;
  const MadePlaces& places;
  const WrittenFolder& written;
  Progress* progress;
  ChecksumMismatches& mismatches;
  bool in_place = false;  // the files of the result are those of the source
  const Checkpoint& result = written.result;
};

struct ProvedTiles {
  ItemHashes hashes;  // by chunk of the result
  // WantedForm::keeps_files: by chunk of the source, of those whose items came along.
  ItemHashes before = {};
};
Result<ProvedTiles> prove_tiles(const ProvingTarget& proving);

}  // namespace shw
