#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

struct Found {
  std::vector<std::string> subjects, pairs, boxes_in;
  std::vector<Box> boxes;
  std::uint64_t count = 0;
  bool complete = true;
};

std::string describe(const Checkpoint& checkpoint, ChunkId chunk) {
  auto item = checkpoint.item(chunk);
  return to_text(box_of(checkpoint, chunk)) +
         (item ? " in " + checkpoint.file(item->file).path : "");
}

// True if one tile is listed twice: same box and item.
bool is_listed_twice(const Checkpoint& checkpoint, ChunkId a, ChunkId b) {
  auto one = checkpoint.item(a), other = checkpoint.item(b);
  return one && other && one->file == other->file && one->offset == other->offset &&
         one->length == other->length && same(checkpoint.offsets(a), checkpoint.offsets(b)) &&
         same(checkpoint.sizes(a), checkpoint.sizes(b));
}

void add(const Checkpoint& checkpoint, TensorId tensor, const Overlap& overlap, Found& found) {
  add_subject(found.subjects, checkpoint.fqn(tensor));
  ++found.count;
  if (found.pairs.size() >= kMaxEvidence) return;
  auto chunks = checkpoint.chunks(tensor);
  found.pairs.push_back(std::string(checkpoint.fqn(tensor)) + ": " +
                        describe(checkpoint, chunks[overlap.first]) + " and " +
                        describe(checkpoint, chunks[overlap.second]));
  found.boxes.push_back(overlap.box);
  found.boxes_in.emplace_back(checkpoint.fqn(tensor));
}

void report(Found found, Severity severity, const std::string& said, const std::string& cause,
            std::vector<Finding>& findings) {
  if (found.subjects.empty()) return;
  std::string_view first = found.pairs.front();
  if (found.subjects.size() == 1) first.remove_prefix(found.subjects.front().size() + 2);
  Finding finding{.rule = "chunk-overlap", .severity = severity};
  finding.cause = (found.complete ? "" : "At least ") + plural(found.count, "pair") +
                  " of chunks of " + short_list_text(found.subjects) + said +
                  (found.count == 1 ? " (" : " (the first: ") + std::string(first) + ")" + cause;
  finding.subjects = std::move(found.subjects);
  finding.evidence = {{"pairs", found.pairs},
                      {"pair_count", static_cast<std::int64_t>(found.count)},
                      {"boxes", found.boxes},
                      {"boxes_in", found.boxes_in},
                      {"complete", found.complete}};
  findings.push_back(std::move(finding));
}

void find_overlaps(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Found apart, twice;
  for (TensorId tensor : each_tensor(facts)) {
    const TilingDefects& defects = facts.tilings[index_of(tensor)].defects;
    auto chunks = checkpoint.chunks(tensor);
    for (const Overlap& overlap : defects.overlaps) {
      // Beyond the recorded pairs, others may exist.
      bool one = defects.complete &&
                 is_listed_twice(checkpoint, chunks[overlap.first], chunks[overlap.second]);
      add(checkpoint, tensor, overlap, one ? twice : apart);
    }
    if (!defects.overlaps.empty()) apart.complete = apart.complete && defects.complete;
  }
  const char* claims = apart.count == 1 ? " claims" : " claim";
  report(std::move(apart), Severity::kError, std::string(claims) + " the same elements",
         ": which values load depends on the read order.", findings);
  report(std::move(twice), Severity::kInfo,
         " are one chunk that the metadata lists twice, with the same item",
         ": a load copies the same bytes twice, which does no harm.", findings);
}

}  // namespace

const Rule kChunkOverlap = {
    .id = "chunk-overlap",
    .depth = Depth::kMetadata,
    .title = "Two chunks cover the same elements",
    .teaches =
        "A save keeps one replica of each chunk, so no two chunks may share an element. If two do, "
        "a load copies both, and the one read last wins: the result depends on the read order, "
        "without an error. Usual causes: ranks computed their offsets for different meshes, or "
        "sizes differ between replicas. A chunk that is only listed twice, with the same item, "
        "does no harm.",
    .lesson =
        {.drawing = R"(
  tensor [8]   │ 0   1   2   3   4   5   6   7 │
  rank 0       │ 0   1   2   3   4 │
  rank 1                   │ 3   4   5   6   7 │
                           └── 2 ──┘ rows twice: who is read last stays
)",
         .remedy =
             "Check whether all ranks used the same mesh (--mesh). If uneven-strided is also "
             "reported and has a remedy, `shardwright repair` applies it; otherwise save again.",
         .link = "https://github.com/pytorch/pytorch/issues/161368"},
    .words = {.text = "loads by chance"},
    .coverage = {.text = "chunks overlap", .place = 2, .applies_at_any_severity = true},
    .outcome = RunOutcome::kLoadFails,
    .symptom_in = SymptomIn::kTiles,
    .repaired_by = RepairedBy::kTiles,
    .boxes_overlap = true,
    .run = find_overlaps,
};

}  // namespace shw
