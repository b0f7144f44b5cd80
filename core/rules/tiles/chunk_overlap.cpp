#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
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
  for (TensorId tensor : each_tensor(facts)) {
    const TilingDefects& defects = facts.tilings[index_of(tensor)].defects;
    if (defects.overlaps.empty()) continue;
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
    .id = "chunk-overlap",
    .depth = Depth::kMetadata,
    .title = "Two tiles claim the same elements",
    .teaches =
        "When a checkpoint is saved, replicas of the same tile are dropped until one is left, so "
        "no two tiles may share an element. Where two do, a load copies both, and the one read "
        "last stays: the result depends on the order and nothing is said about it. Ranks that "
        "computed their offsets for different meshes, or sizes that differ between replicas, write "
        "this.",
    .lesson = {.drawing = R"(
  tensor [8]   │ 0   1   2   3   4   5   6   7 │
  rank 0       │ 0   1   2   3   4 │
  rank 1                   │ 3   4   5   6   7 │
                           └── 2 ──┘ rows twice: who is read last stays
)",
               .remedy = "Look at the mesh that the ranks believed in (--mesh). Overlaps of uneven "
                         "strided shards can be repaired (uneven-strided); others need a new save.",
               .link = "https://github.com/pytorch/pytorch/issues/161368"},
    .words = {.text = "loads by chance"},
    .coverage = {.text = "tiles overlap", .place = 2, .at_any_severity = true},
    .outcome = RunOutcome::kStops,
    .symptom_in = SymptomIn::kTiles,
    .mended_by = MendedBy::kTiles,
    .boxes_overlap = true,
    .run = find_overlaps,
};

}  // namespace shw
