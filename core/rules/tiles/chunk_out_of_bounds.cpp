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
  finding.cause =
      plural(count, "chunk") + " of " + short_list_text(finding.subjects) +
      (count == 1 ? " reaches" : " reach") +
      " outside the tensor's global shape: the recorded offsets or the global shape are wrong.";
  finding.evidence = {{"saved", copy_of(checkpoint.shape(first))},
                      {"tiles", tiles},
                      {"tile_count", static_cast<std::int64_t>(count)}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kChunkOutOfBounds = {
    .id = "chunk-out-of-bounds",
    .depth = Depth::kMetadata,
    .title = "A chunk extends outside its tensor",
    .teaches =
        "A chunk's offset plus its size must stay inside the tensor's global shape, and no offset "
        "may be negative. torch checks this on save, but a framework that replaces the check, or "
        "metadata edited later, can still break it. Either the global shape was taken from the "
        "wrong rank, or the offsets were computed for a different layout.",
    .lesson = {.drawing = R"(
  tensor [6]   ├───────────────────────┤
  tiles        │ 0   1   2 │ 3   4   5 │ 6   7   8 │
                                       └── outside ┘
)",
               .remedy = "Check again with the model's spec (--spec): it shows whether the chunk "
                         "or the global shape is wrong. If uneven-strided is also reported and has "
                         "a remedy, `shardwright repair` applies it; otherwise save again.",
               .link = "https://github.com/pytorch/pytorch/issues/150393"},
    .words = {.text = "will not load"},
    .coverage = {.text = "chunks outside", .place = 3, .applies_at_any_severity = true},
    .outcome = RunOutcome::kLoadFails,
    .symptom_in = SymptomIn::kTiles,
    .repaired_by = RepairedBy::kTiles,
    .run = find_chunks_out_of_bounds,
};

}  // namespace shw
