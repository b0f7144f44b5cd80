#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

void find_unlisted(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Finding finding{.rule = "tile-unlisted"};
  std::vector<std::string> records, boxes_in;
  std::vector<Box> boxes;
  for (const UnlistedChunks& tensor : each_of(facts.unlisted.tensors, facts)) {
    // Loading fails before it reaches the gap: storage-dangling reports it.
    if (facts.unlisted.misplaced.contains(tensor.tensor)) continue;
    finding.subjects.emplace_back(checkpoint.fqn(tensor.tensor));
    for (const UnlistedChunk& tile : tensor.tiles) {
      records.push_back(unlisted_chunk_text(checkpoint, tensor.tensor, tile));
      boxes.push_back(tile.box);
      boxes_in.emplace_back(checkpoint.fqn(tensor.tensor));
    }
    finding.diagnoses.emplace_back(tensor);
  }
  if (finding.subjects.empty()) return;
  const bool one = records.size() == 1;
  finding.cause =
      plural(records.size(), "chunk") + (one ? " is" : " are") +
      " missing from the chunk list of " + plural(finding.subjects.size(), "tensor") +
      ", but the storage record and the bytes are there (" + short_list_text(records) +
      "): torch loads the other chunks and leaves these elements unchanged, without an error.";
  finding.evidence = {{"records", capped(records)},
                      {"tile_count", count_of(records.size())},
                      {"boxes", capped(boxes)},
                      {"boxes_in", capped(boxes_in)}};
  finding.remedy = Remedy{"relabel", true,
                          "List " + plural(records.size(), "chunk") +
                              " again: the record says where it begins, its item how large it is, "
                              "and it fills the hole exactly. No byte moves."};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kTileUnlisted = {
    .id = "tile-unlisted",
    .depth = Depth::kHeaders,
    .title = "A chunk is missing from the metadata, but its bytes are there",
    .teaches =
        "DCP keeps two lists: the chunks of each tensor, and a storage record (file, offset, "
        "length) for each chunk. A load uses the first list, so a chunk that is only in the second "
        "is skipped without an error, and the model keeps its old values there. Usual causes: a "
        "script that edited .metadata, or a merge that took the chunk list of one file. The record "
        "says where the chunk begins and the item how large it is. If these chunks and the listed "
        "ones cover the tensor exactly once, they can be listed again; otherwise nothing is "
        "guessed.",
    .lesson = {.drawing = R"(
  tiles of the tensor          where their bytes are
  fc.weight at (0, 0)  ──────  fc.weight at (0, 0): __0_0.distcp, byte 0
  -                    ?─────  fc.weight at (4, 0): __1_0.distcp, byte 0
)",
               .remedy = "`shardwright repair` lists the chunk again; no tensor byte moves."},
    .words = {.text = "loads without an error, but not all of it"},
    .coverage = {.text = "chunks are missing from the list", .place = 9},
    .cause_of = ExplainedSymptoms::kTiles,
    .run = find_unlisted,
};

}  // namespace shw
