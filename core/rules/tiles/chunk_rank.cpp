#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

void find_wrong_ndims(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Finding finding{.rule = "chunk-rank"};
  std::vector<std::string> tiles;
  std::uint64_t count = 0;
  for (TensorId tensor : each_tensor(facts)) {
    if (facts.tilings[index_of(tensor)].tiling != Tiling::kMalformed) continue;
    std::size_t ndim = checkpoint.shape(tensor).size();
    add_subject(finding.subjects, checkpoint.fqn(tensor));
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      if (checkpoint.offsets(chunk).size() == ndim && checkpoint.sizes(chunk).size() == ndim)
        continue;
      ++count;
      if (tiles.size() < kMaxEvidence) tiles.push_back(chunk_text(checkpoint, tensor, chunk));
    }
  }
  if (finding.subjects.empty()) return;
  TensorId first = *checkpoint.find(finding.subjects.front());
  finding.cause =
      count == 0
          ? finding.subjects.front() + " is recorded with a negative extent, " +
                to_text(checkpoint.shape(first)) + ": the metadata is damaged."
          : plural(count, "chunk") + " of " + short_list_text(finding.subjects) +
                (count == 1 ? " has" : " have") +
                " a different number of dimensions from the tensor, so the position is unknown.";
  finding.evidence = {{"saved", copy_of(checkpoint.shape(first))},
                      {"tiles", tiles},
                      {"tile_count", static_cast<std::int64_t>(count)}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kChunkRank = {
    .id = "chunk-rank",
    .depth = Depth::kMetadata,
    .title = "A chunk and its tensor differ in number of dimensions",
    .teaches =
        "Each chunk is recorded by offsets and sizes, one number per dimension of the tensor. Here "
        "the counts do not match, so the position of the chunk is unknown. Usual cause: code that "
        "adds a leading dimension while it shards (stacked experts, stacked layers) and updates "
        "only the offsets or only the global shape.",
    .lesson = {.drawing = R"(
  tensor    shape   [2, 4, 3]      three numbers
  tile      offsets [0, 0]         two: of which dimensions?
            sizes   [4, 3]
)",
               .remedy =
                   "No safe repair: the checkpoint does not record which dimension is missing. "
                   "Save again with code that adds the new dimension to both offsets and shape.",
               .link = "https://github.com/NVIDIA/Megatron-LM/pull/7162"},
    .words = {.text = "will not load"},
    .coverage = {.text = "coverage unknown", .applies_at_any_severity = true, .instead = true},
    .outcome = RunOutcome::kLoadFails,
    .run = find_wrong_ndims,
};

}  // namespace shw
