#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

void find_payload_shapes(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  if (facts.headers.empty()) return;
  Finding finding{.rule = "payload-shape"};
  std::vector<std::string> items;
  std::uint64_t count = 0;
  for (TensorId tensor : each_tensor(facts)) {
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      const Result<ItemHeader>& header = facts.headers[index_of(chunk)];
      if (!header || same(header->sizes, checkpoint.sizes(chunk))) continue;
      if (count == 0) {
        finding.evidence = {{"recorded", copy_of(checkpoint.sizes(chunk))},
                            {"written", header->sizes}};
      }
      ++count;
      add_subject(finding.subjects, checkpoint.fqn(tensor));
      if (items.size() < kMaxEvidence)
        items.push_back(chunk_text(checkpoint, tensor, chunk) + ": holds " +
                        to_text(header->sizes));
    }
  }
  if (finding.subjects.empty()) return;
  finding.cause = plural(count, "chunk") + (count == 1 ? " holds" : " hold") +
                  " a tensor whose shape differs from the metadata (" + items.front() +
                  "): a larger one is truncated on load without an error, a smaller one fails.";
  finding.evidence.emplace_back("items", items);
  finding.evidence.emplace_back("item_count", static_cast<std::int64_t>(count));
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kPayloadShape = {
    .id = "payload-shape",
    .depth = Depth::kHeaders,
    .title = "A chunk's stored shape differs from the metadata",
    .teaches =
        "The metadata records the sizes of each chunk, and the item in the data file records its "
        "own. They must agree. If the item is larger, torch loads its first elements without an "
        "error: wrong rows. Usual causes: two ranks recorded the same offsets (one entry is kept, "
        "with the sizes of one rank and the bytes of the other), or a data file comes from another "
        "save.",
    .lesson = {.drawing = R"(
  recorded   offsets [2]  sizes [2]      │ 2 │ 3 │
  the item                shape [4]      │ 0 │ 1 │ 2 │ 3 │
  torch takes the first two: rows 0 and 1 where 2 and 3 belong
)",
               .remedy =
                   "If uneven-strided is also reported and has a remedy, `shardwright repair` "
                   "applies it. Otherwise find out whether the metadata or the data file "
                   "belongs to this save.",
               .link = "https://github.com/pytorch/pytorch/issues/168134"},
    .words = {.text = "loads wrong, or not at all"},
    .outcome = RunOutcome::kLoadFails,
    .symptom_in = SymptomIn::kTiles,
    .repaired_by = RepairedBy::kTilesOfItems,
    .run = find_payload_shapes,
};

}  // namespace shw
