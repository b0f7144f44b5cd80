#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/storage/missing_data.h"
#include "core/model/index_only_tensors.h"
#include "core/rules/rules.h"
#include "core/rules/unreadable.h"

namespace shw {
namespace {

std::string_view state_of(EntryKind kind) {
  switch (kind) {
    case EntryKind::kDirectory:
      return "is a directory";
    case EntryKind::kDanglingLink:
      return "is a link to nothing";
    case EntryKind::kOther:
      return "is no regular file";
    case EntryKind::kFile:
    case EntryKind::kMissing:
      break;
  }
  return "is not there";
}

struct Gone {
  std::uint64_t tiles = 0;
  std::vector<std::string> tensors;  // with tiles in it
  std::vector<std::string> lines;    // "fc.weight: 2 of 8 tiles"
  std::vector<std::string> lost;     // "fc.weight: 8 of 32 elements"
  std::int64_t elements = 0;
  std::vector<Box> boxes;           // the first kMaxEvidence
  std::vector<std::string> inside;  // whose each is
  std::vector<std::string> objects;
  std::vector<std::string> named;  // tensors of which an index tells the name, and nothing else
};

Gone gone_with(const Facts& facts, const std::vector<bool>& missing) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Gone gone;
  auto is_in = [&](const std::optional<ItemPlace>& item) {
    return item && item->file != FileId::kNone && missing[index_of(item->file)];
  };
  for (TensorId tensor : each_tensor(facts)) {
    std::uint64_t tiles = 0;
    std::string fqn(checkpoint.fqn(tensor));
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      if (!is_in(checkpoint.item(chunk))) continue;
      ++tiles;
      if (gone.boxes.size() >= kMaxEvidence) continue;
      gone.boxes.push_back(box_of(checkpoint, chunk));
      gone.inside.push_back(fqn);
    }
    if (tiles == 0) continue;
    gone.tiles += tiles;
    add_lost_elements(checkpoint, tensor, gone.elements, gone.lost);
    if (gone.lines.size() < kMaxEvidence)
      gone.lines.push_back(fmt::format("{}: {} of {}", fqn, tiles,
                                       plural(checkpoint.chunks(tensor).size(), "tile")));
    gone.tensors.push_back(std::move(fqn));
  }
  for (const NonTensorEntry& object : checkpoint.objects()) {
    const auto& others = object.of_other_ranks;
    if (is_in(object.item) || std::any_of(others.begin(), others.end(), is_in))
      gone.objects.push_back(object.fqn);
  }
  for (const UnclaimedStorageRecord& tensor : index_only_tensors(checkpoint)) {
    if (missing[index_of(tensor.item.file)]) gone.named.push_back(tensor.fqn);
  }
  return gone;
}

std::string what_is_gone(const Gone& gone) {
  std::vector<std::string> parts;
  if (gone.tiles != 0)
    parts.push_back(plural(gone.tiles, "tile") + " of " + plural(gone.tensors.size(), "tensor") +
                    " (" + some_of(gone.lines) + "), " +
                    plural(static_cast<std::uint64_t>(gone.elements), "element") + " in all,");
  if (!gone.objects.empty())
    parts.push_back(plural(gone.objects.size(), "object") + " (" + some_of(gone.objects) + ")");
  if (!gone.named.empty())
    parts.push_back(plural(gone.named.size(), "tensor") + " that the index places there (" +
                    some_of(gone.named) + ")");
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

// " They are the files of ranks 2 and 3 of 4.": where every name says who wrote it.
std::string whose_they_were(const Checkpoint& checkpoint, const std::vector<bool>& missing) {
  std::set<std::uint32_t> all, gone;
  std::size_t named = 0;
  for (std::uint32_t f = 0; f < checkpoint.file_count(); ++f) {
    const FileRow& file = checkpoint.file(FileId{f});
    if (!file.referenced || !file.rank) continue;
    all.insert(*file.rank);
    if (missing[f]) gone.insert(*file.rank);
    named += missing[f] ? 1 : 0;
  }
  const auto count = static_cast<std::size_t>(std::count(missing.begin(), missing.end(), true));
  if (named != count || all.size() < 2) return {};
  std::vector<std::string> ranks;
  for (std::uint32_t rank : gone) ranks.push_back(fmt::format("{}", rank));
  return fmt::format(" {} of {} {} of {}.", count == 1 ? "It is a file" : "They are files",
                     gone.size() == 1 ? "rank" : "ranks", some_of(ranks, 16), all.size());
}

void describe_gone(const Checkpoint& checkpoint, const Gone& gone,
                   const std::vector<std::string>& states, Finding& finding) {
  std::string what = what_is_gone(gone);
  finding.cause = some_of(states) + ": " +
                  (what.empty() ? "nothing that is recorded was in it, but a load may ask for it."
                                : what + " cannot be read, and a load stops there.");
  if (!gone.named.empty() && !checkpoint.format().traits.has_index)
    finding.cause += " Of a tensor that is gone with its file only the name is known.";
  finding.evidence = {{"files", capped(states)},
                      {"file_count", count_of(finding.subjects.size())},
                      {"tiles", static_cast<std::int64_t>(gone.tiles)},
                      {"elements", gone.elements},
                      {"elements_of", gone.lost},
                      {"tensors", capped(gone.tensors)},
                      {"tensor_count", count_of(gone.tensors.size())},
                      {"objects", capped(gone.objects)}};
  write_unreadable(gone.elements, count_of(gone.tensors.size() + gone.named.size()), finding);
  if (!gone.lines.empty()) finding.evidence.emplace_back("tiles_of", gone.lines);
  if (!gone.boxes.empty()) finding.evidence.emplace_back("boxes", gone.boxes);
  if (!gone.boxes.empty()) finding.evidence.emplace_back("boxes_in", gone.inside);
  if (!gone.named.empty()) {
    finding.evidence.emplace_back("named_only", capped(gone.named));
    finding.evidence.emplace_back("named_only_count", count_of(gone.named.size()));
  }
  finding.subjects.insert(finding.subjects.end(), gone.named.begin(), gone.named.end());
}

void find_missing_files(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  if (checkpoint.directory() == nullptr) return;
  std::vector<bool> missing(checkpoint.file_count(), false);
  std::vector<std::string> states;
  Finding finding;
  finding.rule = "missing-file";
  for (std::uint32_t f = 0; f < checkpoint.file_count(); ++f) {
    const FileRow& file = checkpoint.file(FileId{f});
    if (!file.referenced || !file.safe || file.kind == EntryKind::kFile) continue;
    missing[f] = true;
    finding.subjects.push_back(file.path);
    states.push_back(file.path + " " + std::string(state_of(file.kind)));
  }
  if (finding.subjects.empty()) return;

  describe_gone(checkpoint, gone_with(facts, missing), states, finding);
  finding.cause += whose_they_were(checkpoint, missing);
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kMissingFile = {
    .id = "missing-file",
    .depth = Depth::kMetadata,
    .title = "A data file is not there",
    .teaches =
        "The metadata says in which file each tile lies, and one of those files is absent, a link "
        "to nothing, or a directory. A copy that was cut off, a clean-up that took too much, or a "
        "rank whose local disk was never collected are the usual reasons. Look for the file where "
        "the checkpoint was written, and copy it beside the others: nothing else has to change. "
        "Without it the tiles in it are lost, all others can still be read: `repair --fill zero`, "
        "or --fill from:CHECKPOINT, makes a checkpoint of them, with zeros, or what another "
        "checkpoint has there, in the place of what is gone, and a certificate that lists it. A "
        "plan with the step {\"step\": \"fill\", \"tensors\": [\"*\"], \"gone\": true} does the "
        "same for some of the tensors.",
    .lesson = {.drawing = R"(
  .metadata says           on disk
  tile 0 in __0_0.distcp   __0_0.distcp
  tile 1 in __1_0.distcp   -              gone with all tiles in it
  tile 2 in __2_0.distcp   __2_0.distcp
)",
               .remedy = "Copy the file beside the others; nothing else has to change. Without it "
                         "its tiles are lost and no load of the whole succeeds."},
    .words = {.text = "will not load"},
    .coverage = {.text = "files are gone", .place = 4},
    .outcome = RunOutcome::kStops,
    .blocks = Blocking::kReading,
    .subjects = SubjectsAre::kFilesAndTheirTensors,
    .run = find_missing_files,
};

}  // namespace shw
