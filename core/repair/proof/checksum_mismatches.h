// Tiles of a result that are not what was saved, by the checksums that came along with them
// or by what the items say of themselves. They have the bytes of the source, which were damaged
// there: nobody may say that they were kept.
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
  // From several threads. An empty one is none.
  void add(ChunkId chunk, std::string why);
  // Each member of a team has looked at some; then all know of all.
  Status share(Team& team);
  // Tiles of which the records of a torch checkpoint name the same bytes: one of them at least is
  // another's, and nothing says which.
  void add_shared_items(const Checkpoint& result, const Progress* progress);
  const std::map<ChunkId, std::string>& found() const { return found_; }

 private:
  std::mutex guard_;
  std::map<ChunkId, std::string> found_;
};

// TensorCertificate::damaged and what says so: what the items say, and what tiles contest.
// `entry.lost_boxes` is known: what is lost counts as that.
void record_mismatches(const Checkpoint& result, TensorId tensor,
                       const ChecksumMismatches& mismatches, TensorCertificate& entry,
                       const Contested& ambiguous_elements = {});

// Tensors and other entries of which the certificate says so, each with why.
std::map<std::string, std::string> damage_in(const Certificate& certificate);
bool has_damage(const Certificate& certificate);

}  // namespace shw
