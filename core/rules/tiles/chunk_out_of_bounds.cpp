#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

void find_chunks_out_of_bounds(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Finding finding{.rule = "chunk-out-of-bounds"};
  std::vector<std::string> tiles;
  std::uint64_t count = 0;
  for (TensorId tensor : each_tensor(facts)) {
    if (facts.tilings[index_of(tensor)].tiling != Tiling::kInexact) continue;
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      if (is_inside(checkpoint.offsets(chunk), checkpoint.sizes(chunk), checkpoint.shape(tensor)))
        continue;
      ++count;
      add_subject(finding.subjects, checkpoint.fqn(tensor));
      if (tiles.size() < kMaxEvidence) tiles.push_back(chunk_text(checkpoint, tensor, chunk));
    }
  }
  if (finding.subjects.empty()) return;
  TensorId first = *checkpoint.find(finding.subjects.front());
  finding.cause = plural(count, "tile") + " of " + short_list_text(finding.subjects) +
                  (count == 1 ? " reaches" : " reach") +
                  " outside the tensor: the recorded offsets or the global size are wrong.";
  finding.evidence = {{"saved", copy_of(checkpoint.shape(first))},
                      {"tiles", tiles},
                      {"tile_count", static_cast<std::int64_t>(count)}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kChunkOutOfBounds = {
    .id = "chunk-out-of-bounds",
    .depth = Depth::kMetadata,
    .title = "A tile reaches outside its tensor",
    .teaches =
        "A tile's offset plus its size must end inside the tensor's global shape, and no offset is "
        "negative. torch checks this when it saves, but frameworks that replace its check, or "
        "metadata edited afterwards, get past it. Either the global size was taken from the wrong "
        "rank, or the offsets were computed for another layout.",
    .lesson =
        {.drawing = R"(
  tensor [6]   ├───────────────────────┤
  tiles        │ 0   1   2 │ 3   4   5 │ 6   7   8 │
                                       └── outside ┘
)",
         .remedy =
             "Give the model's spec (--spec): it says whether the tile or the global size is "
             "wrong. Uneven strided shards are repaired (uneven-strided); otherwise save again.",
         .link = "https://github.com/pytorch/pytorch/issues/150393"},
    .words = {.text = "will not load"},
    .coverage = {.text = "tiles outside", .place = 3, .at_any_severity = true},
    .outcome = RunOutcome::kStops,
    .symptom_in = SymptomIn::kTiles,
    .repaired_by = RepairedBy::kTiles,
    .run = find_chunks_out_of_bounds,
};

}  // namespace shw
