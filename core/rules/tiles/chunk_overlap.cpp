#include "core/rules/rules.h"

namespace shw {
namespace {

void find_overlaps(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Finding finding;
  finding.rule = "chunk-overlap";
  std::vector<std::string> pairs;
  std::vector<Box> boxes;
  std::uint64_t count = 0;
  bool complete = true;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    const TilingDefects& defects = facts.tilings[t].defects;
    if (defects.overlaps.empty()) continue;
    TensorId tensor{t};
    finding.subjects.emplace_back(checkpoint.fqn(tensor));
    count += defects.overlaps.size();
    complete = complete && defects.complete;
    auto describe = [&](std::uint32_t i) {
      ChunkId chunk = checkpoint.chunks(tensor)[i];
      auto item = checkpoint.item(chunk);
      return to_text(Box{copy_of(checkpoint.offsets(chunk)), copy_of(checkpoint.sizes(chunk))}) +
             (item ? " in " + checkpoint.file(item->file).path : "");
    };
    for (const Overlap& overlap : defects.overlaps) {
      if (pairs.size() >= kMaxEvidence) break;
      pairs.push_back(finding.subjects.back() + ": " + describe(overlap.first) + " and " +
                      describe(overlap.second));
      boxes.push_back(overlap.box);
    }
  }
  if (finding.subjects.empty()) return;
  finding.cause = (complete ? "" : "At least ") + plural(count, "pair") + " of tiles of " +
                  some_of(finding.subjects) + (count == 1 ? " claims" : " claim") +
                  " the same elements: which bytes win depends on the order of reading.";
  finding.evidence = {{"pairs", pairs},
                      {"pair_count", static_cast<std::int64_t>(count)},
                      {"boxes", boxes},
                      {"complete", complete}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kChunkOverlap = {
    "chunk-overlap", Depth::kMetadata, "Two tiles claim the same elements",
    "When a checkpoint is saved, replicas of the same tile are dropped until one is left, so no "
    "two "
    "tiles may share an element. Where two do, a load copies both, and the one read last stays: "
    "the result depends on the order and nothing is said about it. Ranks that computed their "
    "offsets for different meshes, or sizes that differ between replicas, write this.",
    find_overlaps};

}  // namespace shw
