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
      records.push_back(relisted_text(checkpoint, tensor.tensor, tile));
      boxes.push_back(tile.box);
      boxes_in.emplace_back(checkpoint.fqn(tensor.tensor));
    }
    finding.diagnoses.emplace_back(tensor);
  }
  if (finding.subjects.empty()) return;
  const bool one = records.size() == 1;
  finding.cause =
      plural(records.size(), "tile") + (one ? " is" : " are") + " gone from the list of " +
      plural(finding.subjects.size(), "tensor") +
      ", but the storage record and the bytes are there (" + short_list_text(records) +
      "): torch loads the other tiles and leaves these elements as they were, without an error.";
  finding.evidence = {{"records", capped(records)},
                      {"tile_count", count_of(records.size())},
                      {"boxes", capped(boxes)},
                      {"boxes_in", capped(boxes_in)}};
  finding.remedy = Remedy{"relabel", true,
                          "List " + plural(records.size(), "tile") +
                              " again: the record says where it begins, its item how large it is, "
                              "and it fills the hole exactly. No byte moves."};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kTileUnlisted = {
    .id = "tile-unlisted",
    .depth = Depth::kHeaders,
    .title = "A tile is gone from the list, its bytes are there",
    .teaches =
        "DCP keeps two lists: the tiles of each tensor, and for each tile the file, offset and "
        "length of its bytes. A load uses the first one, so a tile that is in the second alone is "
        "passed over without an error, and the model keeps there what it had before. A script that "
        "edited .metadata, or a merge of several that took the list of one of them, leaves this. "
        "The record says where the tile begins and the item how large it is: where all such tiles "
        "together with those that are listed cover the tensor exactly once, they are put back. "
        "Where they do not, nothing is guessed.",
    .lesson = {.drawing = R"(
  tiles of the tensor          where their bytes are
  fc.weight at (0, 0)  ──────  fc.weight at (0, 0): __0_0.distcp, byte 0
  -                    ?─────  fc.weight at (4, 0): __1_0.distcp, byte 0
)",
               .remedy = "List the tile again: repair does it, and no tensor byte moves."},
    .words = {.text = "loads without an error, but not all of it"},
    .coverage = {.text = "tiles are missing from the list", .place = 9},
    .cause_of = ExplainedSymptoms::kTiles,
    .run = find_unlisted,
};

}  // namespace shw
