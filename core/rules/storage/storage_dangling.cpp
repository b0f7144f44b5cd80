#include "core/rules/rules.h"

namespace shw {
namespace {

void report_homeless(const RuleInput& input, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = input.checkpoint;
  Finding finding;
  finding.rule = "storage-dangling";
  std::vector<std::string> items;
  std::uint64_t tiles = 0;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    for (ChunkId chunk : checkpoint.chunks(TensorId{t})) {
      if (checkpoint.item(chunk)) continue;
      // An empty tile has no byte to find.
      if (volume(checkpoint.sizes(chunk)) == 0) continue;
      ++tiles;
      add_subject(finding.subjects, checkpoint.fqn(TensorId{t}));
      if (items.size() < kMaxEvidence) items.push_back(chunk_text(checkpoint, TensorId{t}, chunk));
    }
  }
  std::uint64_t objects = 0;
  for (const ObjectRow& object : checkpoint.objects()) {
    if (object.item) continue;
    ++objects;
    finding.subjects.push_back(object.fqn);
    if (items.size() < kMaxEvidence) items.push_back(object.fqn);
  }
  if (finding.subjects.empty()) return;
  finding.cause = "The metadata lists " + (tiles != 0 ? plural(tiles, "tile") : std::string()) +
                  (tiles != 0 && objects != 0 ? " and " : "") +
                  (objects != 0 ? plural(objects, "object") : std::string()) +
                  " without saying in which file: a load fails at the first of them.";
  finding.evidence = {{"items", items}, {"item_count", static_cast<std::int64_t>(tiles + objects)}};
  findings.push_back(std::move(finding));
}

void report_strays(const RuleInput& input, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = input.checkpoint;
  if (checkpoint.strays().empty()) return;
  Finding finding;
  finding.rule = "storage-dangling";
  finding.severity = Severity::kWarning;
  std::vector<std::string> records;
  for (const StrayRecord& stray : checkpoint.strays()) {
    add_subject(finding.subjects, stray.fqn);
    if (records.size() >= kMaxEvidence) continue;
    records.push_back(
        stray.fqn + (stray.offsets ? " offsets " + to_text(*stray.offsets) : "") +
        (stray.item.file == FileId::kNone ? "" : ": " + place_text(checkpoint, stray.item)));
  }
  finding.cause = plural(checkpoint.strays().size(), "storage record") +
                  (checkpoint.strays().size() == 1 ? " belongs" : " belong") +
                  " to no tile: bytes are kept in the files that nothing can ask for, or the "
                  "metadata lost the tiles that they were.";
  finding.evidence = {{"records", records}, {"record_count", count_of(checkpoint.strays().size())}};
  findings.push_back(std::move(finding));
}

void run(const RuleInput& input, std::vector<Finding>& findings) {
  report_homeless(input, findings);
  report_strays(input, findings);
}

}  // namespace

const Rule kStorageDangling = {
    "storage-dangling", Depth::kMetadata, "Tiles and storage records do not match",
    "DCP keeps two lists: the tiles of each tensor, and for each tile the file, offset and length "
    "of its bytes; the tile's offsets join them. Here one list has an entry that the other lacks. "
    "A merge of several .metadata files that forgot one, or a tool that moved tiles and changed "
    "one list only, leaves this. A tile without a record cannot be loaded; a record without a tile "
    "is bytes that nobody reads.",
    run};

}  // namespace shw
