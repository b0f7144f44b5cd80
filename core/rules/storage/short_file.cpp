#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/storage/missing_data.h"
#include "core/formats/common/lfs_pointer.h"
#include "core/rules/rules.h"
#include "core/rules/unreadable.h"

namespace shw {
namespace {

struct TruncatedItems {
  std::vector<std::uint64_t> tiles_in;  // items beyond the end, per file
  std::vector<std::string> items;
  std::vector<std::string> tensors;
  std::vector<std::string> lines;  // "fc.weight: 2 of 8 tiles", and entries that are not tensors
  std::vector<std::string> lost;   // "fc.weight: 8 of 32 elements"
  std::int64_t elements = 0;
  std::size_t tensors_cut = 0;  // tensors with such tiles, unless replicas exist
  std::int64_t needed = 0;      // the largest end of an item
  // Number of items whose offset or length is negative, or whose end overflows.
  std::uint64_t impossible = 0;
  std::string first_impossible;
};

// Records the item if it is cut off, and returns whether it is.
bool check_item(const Checkpoint& checkpoint, std::string_view fqn, const ItemPlace& place,
                TruncatedItems& out) {
  const FileRow& file = checkpoint.file(place.file);
  if (!file.safe || file.kind != EntryKind::kFile) return false;
  if (is_reachable(checkpoint, place)) return false;
  ++out.tiles_in[index_of(place.file)];
  if (out.items.size() < kMaxEvidence)
    out.items.push_back(std::string(fqn) + ": " + place_text(checkpoint, place));
  add_subject(out.tensors, fqn);
  auto end = checked_add(place.offset, place.length);
  if (place.offset >= 0 && place.length >= 0 && end) {
    out.needed = std::max(out.needed, *end);
  } else if (++out.impossible == 1) {
    out.first_impossible = std::string(fqn) + ": " + place_text(checkpoint, place);
  }
  return true;
}

void check_tensor(const Checkpoint& checkpoint, TensorId tensor, TruncatedItems& out) {
  const std::string_view fqn = checkpoint.fqn(tensor);
  std::uint64_t tiles = 0;
  bool has_replica = false;
  LostElements lost;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    auto item = checkpoint.item(chunk);
    if (item && check_item(checkpoint, fqn, *item, out)) {
      ++tiles;
      lost.add(checkpoint, chunk);
    }
    for (const Replica& replica : checkpoint.replicas(chunk))
      has_replica |= check_item(checkpoint, fqn, checkpoint.place(replica.storage), out);
  }
  if (tiles != 0) {
    lost.write(checkpoint, tensor, out.elements, out.lost);
    ++out.tensors_cut;
  }
  if (out.lines.size() == kMaxEvidence) return;
  const std::size_t all = checkpoint.chunks(tensor).size();
  if (tiles != 0 && all == 1)
    out.lines.emplace_back(fqn);
  else if (tiles != 0)
    out.lines.push_back(fmt::format("{}: {} of {}", fqn, tiles, plural(all, "chunk")));
  else if (has_replica)
    out.lines.push_back(fmt::format("{}: a copy", fqn));
}

void check_object(const Checkpoint& checkpoint, const NonTensorEntry& object, TruncatedItems& out) {
  bool is_cut = object.item && object.item->file != FileId::kNone &&
                check_item(checkpoint, object.fqn, *object.item, out);
  for (const ItemPlace& place : object.of_other_ranks)
    is_cut |= check_item(checkpoint, object.fqn, place, out);
  if (is_cut && out.lines.size() < kMaxEvidence) out.lines.push_back(object.fqn);
}

// The cause; impossible ranges mean a wrong record rather than a short file.
std::string short_file_cause(const std::vector<std::string>& files, std::uint64_t items,
                             const TruncatedItems& found) {
  std::string cause;
  const std::uint64_t beyond = items - found.impossible;
  if (beyond != 0)
    cause =
        short_list_text(files) + (files.size() == 1 ? " ends" : " end") + " before " +
        plural(beyond, "item") + " that the metadata lists there (" + short_list_text(found.lines) +
        ")" +
        (found.elements == 0
             ? ""
             : ", " + plural(static_cast<std::uint64_t>(found.elements), "element") + " in all") +
        ": truncated while it was written or copied, or the recorded range is wrong.";
  if (found.impossible != 0)
    cause += (cause.empty() ? "" : " ") + plural(found.impossible, "recorded range") +
             (found.impossible == 1 ? " is" : " are") + " at a byte range that no file can have (" +
             found.first_impossible + (found.impossible == 1 ? "" : ", ...") +
             "): the record is wrong.";
  return cause;
}

// True if the file is a Git LFS pointer, which a clone without Git LFS has instead of the data.
bool is_lfs_pointer(const Facts& facts, const FileRow& file) {
  if (facts.depth < Depth::kHeaders) return false;
  auto source = facts.checkpoint.directory()->open(file.path);
  return source && !check_is_no_lfs_pointer(**source).has_value();
}

// Adds to the finding that these files are Git LFS pointers, not truncated files: the data was
// never downloaded.
void explain_pointers(std::vector<std::string> pointers, Finding& finding) {
  if (pointers.empty()) return;
  const bool is_one = pointers.size() == 1;
  const std::string told =
      short_list_text(pointers) + (is_one ? " is a Git LFS pointer" : " are Git LFS pointers") +
      ": the data " + (is_one ? "file itself was" : "files themselves were") +
      " not downloaded, and `git lfs pull` fetches " + (is_one ? "it" : "them") + ".";
  if (pointers.size() == finding.subjects.size()) finding.cause.clear();
  finding.cause += (finding.cause.empty() ? "" : " ") + told;
  finding.evidence.emplace_back("lfs_pointers", capped(pointers));
}

void find_short_files(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  if (checkpoint.directory() == nullptr) return;
  TruncatedItems found;
  found.tiles_in.resize(checkpoint.file_count(), 0);
  for (TensorId tensor : each_tensor(facts)) check_tensor(checkpoint, tensor, found);
  for (const NonTensorEntry& object : checkpoint.objects()) check_object(checkpoint, object, found);
  Finding finding{.rule = "short-file"};
  std::vector<std::string> files, pointers;
  std::vector<bool> is_short(checkpoint.file_count(), false);
  std::uint64_t tiles = 0;
  for (std::uint32_t f = 0; f < checkpoint.file_count(); ++f) {
    if (found.tiles_in[f] == 0) continue;
    const FileRow& file = checkpoint.file(FileId{f});
    is_short[f] = true;
    tiles += found.tiles_in[f];
    finding.subjects.push_back(file.path);
    if (is_lfs_pointer(facts, file)) pointers.push_back(file.path);
    files.push_back(file.path + ": " + human_count(file.size) + " bytes, " +
                    plural(found.tiles_in[f], "item") + " outside");
  }
  if (finding.subjects.empty()) return;
  finding.cause = short_file_cause(finding.subjects, tiles, found);
  finding.evidence = {{"files", capped(files)},
                      {"file_count", count_of(files.size())},
                      {"items", found.items},
                      {"item_count", static_cast<std::int64_t>(tiles)},
                      {"elements", found.elements},
                      {"elements_of", found.lost},
                      {"tensors", capped(found.tensors)},
                      {"tensor_count", count_of(found.tensors.size())},
                      {"bytes_needed", found.needed}};
  write_unreadable(found.elements, count_of(found.tensors_cut), finding);
  if (auto ranks = ranks_of_files(checkpoint, is_short); !ranks.empty())
    finding.evidence.emplace_back("ranks", capped(ranks));
  explain_pointers(std::move(pointers), finding);
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kShortFile = {
    .id = "short-file",
    .depth = Depth::kMetadata,
    .title = "A data file ends too early",
    .teaches =
        "The metadata gives each item an offset and a length in its file, and here that range goes "
        "past the end of the file. Usual causes: a full disk, a job that was killed while it "
        "wrote, or an interrupted copy. Compare the size with the original file. The items before "
        "the end are complete; the others can be filled like those of a missing file (`repair "
        "--fill`). A file of zero bytes that the metadata does not reference is normal: a rank "
        "that had nothing to save writes one.",
    .lesson = {.drawing = R"(
  recorded   ├─ item 0 ─┼─ item 1 ─┼─ item 2 ─┤   4096 bytes
  on disk    ├─ item 0 ─┼─ item 1 ─┼─ i           2900 bytes
              whole      whole      cut off
)",
               .remedy = "Compare the size with the original file and copy it again. Items before "
                         "the end are still readable.",
               .link = "https://github.com/pytorch/pytorch/pull/170244"},
    .words = {.text = "will not load"},
    .coverage = {.text = "files are cut off", .place = 5},
    .outcome = RunOutcome::kLoadFails,
    .blocks = Blocking::kNamed,
    .run = find_short_files,
};

}  // namespace shw
