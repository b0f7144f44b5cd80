// Proves every tile of a result: written tiles by the fingerprint of the elements that were read
// for them, kept tiles by the hash of their item in the source.
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

// Maps a tile of an entry to its index in WrittenFolder::made. Outputs have the tiles of an entry
// in the order of its target.
class ResultPlaces {
 public:
  ResultPlaces(const Outputs& outputs, const LaidOut& laid_out);

  std::uint32_t tiles_of(std::uint32_t entry) const;
  // nullopt if the tile keeps its item unchanged.
  std::optional<std::uint32_t> find(std::uint32_t entry, std::uint32_t tile) const;

 private:
  static constexpr std::uint32_t kKept = 0xFFFFFFFFu;
  std::vector<std::size_t> first_;   // by entry, in made_
  std::vector<std::uint32_t> made_;  // by entry and tile
};

struct ProvingTarget {
  const TargetState& all;
  const ResultFormat& form;
  const ResultPlaces& places;
  const WrittenFolder& written;
  Progress* progress;
  ChecksumMismatches& mismatches;
  bool in_place = false;  // the files of the result are those of the source
  const Checkpoint& result = written.result;
};

struct ProvedTiles {
  ItemHashes hashes;  // by chunk of the result
  // By source chunk, for chunks whose items were kept (ResultFormat::keeps_files).
  ItemHashes before = {};
};
Result<ProvedTiles> prove_tiles(const ProvingTarget& proving);

}  // namespace shw
