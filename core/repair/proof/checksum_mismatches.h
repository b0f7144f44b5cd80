// Tiles of a result that do not match the checksums that were saved with them, or contradict what
// their items say. They have the source's bytes, which were already damaged, so they may not be
// certified as kept.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/repair/proof/ambiguous_elements.h"
#include "core/repair/proof/certificate.h"

namespace shw {

class Team;

class ChecksumMismatches {
 public:
  // Thread-safe. An empty `why` is ignored.
  void add(ChunkId chunk, std::string why);
  // Exchanges the mismatches between ranks: each rank checked some tiles; afterwards every rank has
  // all of them.
  Status share(Team& team);
  // Adds tiles whose records name the same bytes in a torch checkpoint: at least one of them has
  // another tile's bytes, and the records do not show which.
  void add_shared_items(const Checkpoint& result, const Progress* progress);
  const std::map<ChunkId, std::string>& found() const { return found_; }

 private:
  std::mutex guard_;
  std::map<ChunkId, std::string> found_;
};

// Sets TensorCertificate::damaged and ::damage, from mismatches and ambiguous tiles. Call it after
// `entry.lost_boxes` is set: lost elements count only as lost.
void record_mismatches(const Checkpoint& result, TensorId tensor,
                       const ChecksumMismatches& mismatches, TensorCertificate& entry,
                       const AmbiguousElements& ambiguous_elements = {});

// By FQN: what the certificate says about damage, for tensors and other entries.
std::map<std::string, std::string> damage_by_fqn(const Certificate& certificate);
bool has_damage(const Certificate& certificate);

}  // namespace shw
