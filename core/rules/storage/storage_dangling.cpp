#include <fmt/core.h>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"
#include "core/rules/unreadable.h"

namespace shw {
namespace {

// Reports tiles without a record. Only an index can lack a record; without an index tiles are found
// in their own files, and opening reported unreadable ones.
void report_chunks_without_record(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  if (!checkpoint.format().traits.has_index) return;
  Finding finding{.rule = "storage-dangling"};
  std::vector<std::string> items;
  std::uint64_t tiles = 0;
  UnreadableCount unreadable;
  for (TensorId tensor : each_tensor(facts)) {
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      if (checkpoint.item(chunk)) continue;
      // This tile is reported with the place of its bytes.
      if (facts.unlisted.misplaced.contains(tensor)) break;
      // Empty tiles have no bytes.
      if (volume(checkpoint.sizes(chunk)) == 0) continue;
      ++tiles;
      unreadable.add(checkpoint, tensor, chunk);
      add_subject(finding.subjects, checkpoint.fqn(tensor));
      if (items.size() < kMaxEvidence) items.push_back(chunk_text(checkpoint, tensor, chunk));
    }
  }
  std::uint64_t objects = 0;
  for (const NonTensorEntry& object : checkpoint.objects()) {
    if (object.item || object.inlined) continue;
    ++objects;
    finding.subjects.push_back(object.fqn);
    if (items.size() < kMaxEvidence) items.push_back(object.fqn);
  }
  if (finding.subjects.empty()) return;
  finding.cause =
      "The metadata lists " + (tiles != 0 ? plural(tiles, "chunk") : std::string()) +
      (tiles != 0 && objects != 0 ? " and " : "") +
      (objects != 0 ? plural(objects, "object") : std::string()) +
      " without a storage record, so their file is unknown: a load fails at the first of them.";
  finding.evidence = {{"items", items}, {"item_count", static_cast<std::int64_t>(tiles + objects)}};
  unreadable.write(finding);
  findings.push_back(std::move(finding));
}

// Tiles at boxes without a record, and records at boxes that are not listed, which together form a
// whole tensor.
void report_misplaced(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Finding finding{.rule = "storage-dangling"};
  std::vector<std::string> listed, records;
  for (const UnlistedChunks& tensor : each_of(facts.unlisted.tensors, facts)) {
    if (!facts.unlisted.misplaced.contains(tensor.tensor)) continue;
    finding.subjects.emplace_back(checkpoint.fqn(tensor.tensor));
    for (ChunkId chunk : checkpoint.chunks(tensor.tensor)) {
      if (!checkpoint.item(chunk)) listed.push_back(chunk_text(checkpoint, tensor.tensor, chunk));
    }
    for (const UnlistedChunk& tile : tensor.tiles)
      records.push_back(unlisted_chunk_text(checkpoint, tensor.tensor, tile));
    finding.diagnoses.emplace_back(tensor);
  }
  if (finding.subjects.empty()) return;
  finding.cause = "The metadata lists " + plural(listed.size(), "chunk") +
                  " without a storage record (" + short_list_text(listed) +
                  "): a load fails at the " +
                  "first of them. Their boxes are wrong: the records that belong to no chunk (" +
                  short_list_text(records) + ") cover exactly what the other chunks leave open.";
  finding.evidence = {{"items", capped(listed)},
                      {"item_count", count_of(listed.size())},
                      {"records", capped(records)}};
  finding.remedy = Remedy{"relabel", true,
                          "List " + plural(records.size(), "chunk") +
                              " as its record and its item say, instead of " +
                              plural(listed.size(), "chunk") + " without bytes. No byte moves."};
  findings.push_back(std::move(finding));
}

void report_unclaimed_records(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  if (checkpoint.unclaimed_records().empty() || !checkpoint.format().traits.has_index) return;
  Finding finding{.rule = "storage-dangling", .severity = Severity::kWarning};
  std::vector<std::string> records, why_not;
  std::uint64_t unclaimed_records = 0;
  for (std::size_t i = 0; i < checkpoint.unclaimed_records().size(); ++i) {
    const UnclaimedStorageRecord& unclaimed = checkpoint.unclaimed_records()[i];
    if (facts.unlisted.placed.contains(i)) continue;
    ++unclaimed_records;
    if (auto why = facts.unlisted.why_not.find(i);
        why != facts.unlisted.why_not.end() && why_not.size() < kMaxEvidence)
      why_not.push_back(unclaimed.fqn + " offsets " + to_text(*unclaimed.offsets) + ": " +
                        why->second);
    add_subject(finding.subjects, unclaimed.fqn);
    if (records.size() >= kMaxEvidence) continue;
    records.push_back(
        unclaimed.fqn + (unclaimed.offsets ? " offsets " + to_text(*unclaimed.offsets) : "") +
        (unclaimed.item.file == FileId::kNone ? ""
                                              : ": " + place_text(checkpoint, unclaimed.item)));
  }
  if (unclaimed_records == 0) return;
  finding.cause = plural(unclaimed_records, "storage record") +
                  (unclaimed_records == 1 ? " belongs" : " belong") +
                  " to no chunk: the files keep bytes that no load reads, or the metadata lost the "
                  "chunks that they belong to.";
  if (!why_not.empty())
    finding.cause += " They are not restored automatically (" + short_list_text(why_not, 1) + ").";
  finding.evidence = {{"records", records},
                      {"record_count", static_cast<std::int64_t>(unclaimed_records)}};
  if (!why_not.empty()) finding.evidence.emplace_back("not_put_back", why_not);
  findings.push_back(std::move(finding));
}

// Number of bytes of a tile's elements; empty if they are compressed or of unknown size.
std::optional<std::int64_t> least_bytes(const Checkpoint& checkpoint, TensorId tensor,
                                        ChunkId chunk) {
  auto elements = volume(checkpoint.sizes(chunk));
  if (!elements || !checkpoint.transforms(chunk).empty()) return std::nullopt;
  return checked_mul(*elements, std::int64_t{size_of(checkpoint.dtype(tensor))});
}

// True if the item's header shows that the item is complete: its bytes are compressed,
// or it holds a tensor subclass (an int8 payload with scales), which not-looked-at
// reports.
bool explains_shorter_item(const Facts& facts, ChunkId chunk) {
  if (facts.headers.empty()) return false;
  const Result<ItemHeader>& header = facts.headers[index_of(chunk)];
  if (!header) return header.error().kind == ErrorKind::kUnsupported;
  return header->compressed &&
         header->dtype == facts.checkpoint.dtype(facts.checkpoint.tensor_of(chunk)) &&
         same(header->sizes, facts.checkpoint.sizes(chunk));
}

// Without headers, a quantised payload (at least 2 of 32 bits) looks like one that is cut
// off.
bool may_be_quantised(const Facts& facts, std::int64_t length, std::int64_t least) {
  return facts.headers.empty() && length >= least / 16;
}

// Reports records whose length is too short for the tile's elements, e.g. zero. No header is
// needed.
void report_too_short(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  if (!checkpoint.format().traits.has_index) return;
  Finding finding{.rule = "storage-dangling"};
  std::vector<std::string> items;
  std::uint64_t tiles = 0;
  bool all_may_be = true;
  for (TensorId tensor : each_tensor(facts)) {
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      auto item = checkpoint.item(chunk);
      auto least = least_bytes(checkpoint, tensor, chunk);
      if (!item || !least || item->length >= *least || !is_reachable(checkpoint, *item)) continue;
      if (explains_shorter_item(facts, chunk)) continue;
      all_may_be = all_may_be && may_be_quantised(facts, item->length, *least);
      ++tiles;
      add_subject(finding.subjects, checkpoint.fqn(tensor));
      if (items.size() < kMaxEvidence)
        items.push_back(fmt::format("{}: {} bytes recorded, its elements take {}",
                                    chunk_text(checkpoint, tensor, chunk), item->length, *least));
    }
  }
  if (finding.subjects.empty()) return;
  finding.cause = plural(tiles, "storage record") + (tiles == 1 ? " is" : " are") +
                  " shorter than the elements of the chunk (" + items.front() +
                  (tiles == 1 ? "" : ", ...") +
                  (all_may_be ? "): they are quantised, or cut. --depth headers tells."
                              : "): these bytes cannot be the chunk.");
  if (all_may_be) finding.severity = Severity::kInfo;
  finding.evidence = {{"items", items}, {"item_count", static_cast<std::int64_t>(tiles)}};
  findings.push_back(std::move(finding));
}

void find_dangling_storage(const Facts& facts, std::vector<Finding>& findings) {
  report_chunks_without_record(facts, findings);
  report_misplaced(facts, findings);
  report_too_short(facts, findings);
  report_unclaimed_records(facts, findings);
}

}  // namespace

const Rule kStorageDangling = {
    .id = "storage-dangling",
    .depth = Depth::kMetadata,
    .title = "Chunks and storage records do not match",
    .teaches =
        "DCP keeps two lists: the chunks of each tensor, and a storage record (file, offset, "
        "length) for each chunk; the chunk's offsets link them. Here one list has an entry that "
        "the other does not. Usual causes: a merge of .metadata files that left one out, or a tool "
        "that moved chunks and changed only one list. A chunk without a record cannot be loaded; a "
        "record without a chunk points to bytes that no loader reads.",
    .lesson = {.drawing = R"(
  tiles of the tensor          where their bytes are
  fc.weight at (0, 0)  ──────  fc.weight at (0, 0): __0_0.distcp, byte 0
  fc.weight at (4, 0)  ──?     -
  -                    ?─────  fc.weight at (0, 4): __1_0.distcp, byte 0
)",
               .remedy =
                   "If the records and their items cover exactly what the other chunks leave open, "
                   "`shardwright repair` lists them instead of the chunks without bytes. Otherwise "
                   "no repair is safe: look for the .metadata that was left out of the merge."},
    .words = {.text = "will not load", .as_warning = "bytes without an owner"},
    .coverage = {.text = "chunks without bytes", .place = 6},
    .outcome = RunOutcome::kLoadFails,
    .run = find_dangling_storage,
};

}  // namespace shw
