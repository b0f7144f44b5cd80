// FSDP split what TP had split before (StridedShard), but the boxes were recorded as if FSDP had
// split first: chunk w = d T + t holds rows of block r = t D + d. Nothing is lost and the tiling is
// perfect; only writers and spec together show it.
#include "core/facts/facts.h"
#include "core/facts/layout/spec_layout.h"
#include "core/facts/layout/split_orders.h"
#include "core/mesh/torch_offset_bugs.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

void find_strided_recorded_plain(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  Finding finding{.rule = "strided-recorded-plain"};
  finding.link = "TransformerEngine #2713";
  std::int64_t chunks = 0;
  for (const DifferentOrder& item : facts.other_orders) {
    if (is_expert(*item.entry)) continue;
    if (finding.subjects.empty()) {
      finding.cause = std::string(c.fqn(item.tensor)) + " was cut by " +
                      order_text(*item.entry->mesh, item.expected) +
                      ", but its chunks are recorded as if by " +
                      order_text(*item.entry->mesh, item.saved) +
                      ": every rank's rows are recorded at another rank's position.";
      finding.evidence = {{"mesh", to_text(*item.entry->mesh)},
                          {"placements", to_text(item.entry->placements)},
                          {"recorded_as", to_text(as_plain_placements(item.entry->placements))}};
    }
    finding.subjects.emplace_back(c.fqn(item.tensor));
    chunks += static_cast<std::int64_t>(item.boxes.size());
    finding.diagnoses.emplace_back(WrongBoxes{item.tensor, item.entry->shape, item.boxes});
  }
  if (finding.subjects.empty()) return;
  finding.evidence.emplace_back("chunks_with_writer", chunks);
  finding.remedy =
      Remedy{"relabel", true,
             "Record each chunk at the rows that its rank holds: no byte moves, nothing is lost."};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kStridedRecordedPlain = {
    .id = "strided-recorded-plain",
    .depth = Depth::kMetadata,
    .title = "A strided shard was recorded as a plain one",
    .teaches =
        "FSDP over tensor parallelism shards rows that are already sharded (StridedShard). "
        "Recorded as a plain shard, every chunk is placed at another rank's rows. The chunks cover "
        "the tensor and nothing is lost, so no loader reports an error. The ranks that wrote the "
        "chunks and the spec together show it; the repair corrects the chunk offsets and moves no "
        "byte.",
    .lesson = {.drawing = R"(
  8 rows over tp 2, then dp 4

  row                0     1     2     3     4     5     6     7
  held by dp,tp     0,0   1,0   2,0   3,0   0,1   1,1   2,1   3,1
  recorded at row    0     2     4     6     1     3     5     7

  expected        │  0  │  1  │  2  │  3  │  4  │  5  │  6  │  7  │
  as it loads     │  0  │  4  │  1  │  5  │  2  │  6  │  3  │  7  │
)",
               .remedy = "`shardwright repair --spec ... --mesh ...` corrects the chunk offsets; "
                         "no byte moves, nothing is lost.",
               .link = "https://github.com/NVIDIA/TransformerEngine/pull/2713"},
    .cause_of = ExplainedSymptoms::kTiles,
    .run = find_strided_recorded_plain,
};

}  // namespace shw
