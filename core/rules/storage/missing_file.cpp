#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>

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
      return "is a broken link";
    case EntryKind::kOther:
      return "is not a regular file";
    case EntryKind::kFile:
    case EntryKind::kMissing:
      break;
  }
  return "is not there";
}

struct MissingData {
  std::uint64_t tiles = 0;
  std::vector<std::string> tensors;  // tensors with tiles in the file
  std::vector<std::string> lines;    // "fc.weight: 2 of 8 tiles"
  std::vector<std::string> lost;     // "fc.weight: 8 of 32 elements"
  std::int64_t elements = 0;
  std::vector<Box> boxes;           // the first kMaxEvidence
  std::vector<std::string> inside;  // by box: its tensor
  std::vector<std::string> objects;
  std::vector<std::string> named;  // tensors of which the index has only the name
};

MissingData data_lost_with_files(const Facts& facts, const std::vector<bool>& missing) {
  const Checkpoint& checkpoint = facts.checkpoint;
  MissingData missing_data;
  auto is_in = [&](const std::optional<ItemPlace>& item) {
    return item && item->file != FileId::kNone && missing[index_of(item->file)];
  };
  for (TensorId tensor : each_tensor(facts)) {
    std::uint64_t tiles = 0;
    LostElements lost;
    std::string fqn(checkpoint.fqn(tensor));
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      if (!is_in(checkpoint.item(chunk))) continue;
      ++tiles;
      lost.add(checkpoint, chunk);
      if (missing_data.boxes.size() >= kMaxEvidence) continue;
      missing_data.boxes.push_back(box_of(checkpoint, chunk));
      missing_data.inside.push_back(fqn);
    }
    if (tiles == 0) continue;
    missing_data.tiles += tiles;
    lost.write(checkpoint, tensor, missing_data.elements, missing_data.lost);
    if (missing_data.lines.size() < kMaxEvidence)
      missing_data.lines.push_back(fmt::format("{}: {} of {}", fqn, tiles,
                                               plural(checkpoint.chunks(tensor).size(), "chunk")));
    missing_data.tensors.push_back(std::move(fqn));
  }
  for (const NonTensorEntry& object : checkpoint.objects()) {
    const auto& others = object.of_other_ranks;
    if (is_in(object.item) || std::any_of(others.begin(), others.end(), is_in))
      missing_data.objects.push_back(object.fqn);
  }
  std::unordered_set<std::string_view> named;  // an index may place one name in several files
  for (const UnclaimedStorageRecord& tensor : index_only_tensors(checkpoint)) {
    if (missing[index_of(tensor.item.file)] && named.insert(tensor.fqn).second)
      missing_data.named.push_back(tensor.fqn);
  }
  return missing_data;
}

std::string missing_data_text(const MissingData& missing_data) {
  std::vector<std::string> parts;
  if (missing_data.tiles != 0)
    parts.push_back(
        fmt::format("{} of {} ({} in all)", plural(missing_data.tiles, "chunk"),
                    plural(missing_data.tensors.size(), "tensor"),
                    plural(static_cast<std::uint64_t>(missing_data.elements), "element")));
  if (!missing_data.objects.empty())
    parts.push_back(plural(missing_data.objects.size(), "object") + " (" +
                    short_list_text(missing_data.objects) + ")");
  if (!missing_data.named.empty())
    parts.push_back(plural(missing_data.named.size(), "tensor") + " that the index lists there (" +
                    short_list_text(missing_data.named) + ")");
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  if (text.empty()) return text;
  text += " cannot be read, and a load fails.";
  if (!missing_data.lines.empty())
    text += " Unreadable: " + short_list_text(missing_data.lines) + ".";
  return text;
}

// "a.pt is a directory", or "a.pt, b.pt, c.pt and 2 more are not there".
std::string states_text(const std::vector<std::string>& files,
                        const std::vector<std::string>& states) {
  const std::string missing(state_of(EntryKind::kMissing));
  const bool all_missing = std::all_of(states.begin(), states.end(), [&](const std::string& state) {
    return state.ends_with(" " + missing);
  });
  return all_missing && files.size() > 1 ? short_list_text(files) + " are not there"
                                         : short_list_text(states);
}

// " They are the files of ranks 2 and 3 of 4.", if every name contains the writer's rank.
std::string writers_of_missing_text(const Checkpoint& checkpoint,
                                    const std::vector<bool>& missing) {
  std::set<std::uint32_t> all, missing_data;
  std::size_t named = 0;
  for (std::uint32_t f = 0; f < checkpoint.file_count(); ++f) {
    const FileRow& file = checkpoint.file(FileId{f});
    if (!file.referenced || !file.rank) continue;
    all.insert(*file.rank);
    if (missing[f]) missing_data.insert(*file.rank);
    named += missing[f] ? 1 : 0;
  }
  const auto count = static_cast<std::size_t>(std::count(missing.begin(), missing.end(), true));
  if (named != count || all.size() < 2) return {};
  std::vector<std::string> ranks;
  for (std::uint32_t rank : missing_data) ranks.push_back(fmt::format("{}", rank));
  return fmt::format(" {} of {} {} of {}.", count == 1 ? "It is a file" : "They are files",
                     missing_data.size() == 1 ? "rank" : "ranks", short_list_text(ranks, 16),
                     all.size());
}

// Text about missing files whose content no record describes. If each rank's file is its own
// record, the parts in them are holes now.
std::string unrecorded_text(const Facts& facts, std::size_t files) {
  const std::string was_in = files == 1 ? "was in it" : "was in them";
  const bool has_holes =
      std::any_of(facts.tilings.begin(), facts.tilings.end(),
                  [](const TensorTiling& tensor) { return !tensor.defects.gaps.empty(); });
  if (has_holes)
    return "no record says what " + was_in +
           ". Elements that are in no chunk (coverage-gap) may have been in " +
           (files == 1 ? "it." : "them.");
  return facts.checkpoint.format().traits.has_index
             ? "nothing that is recorded " + was_in + ", but a load may request it."
             : "no record says what " + was_in +
                   ". Tensors that no other file has (layers of a pipeline stage, experts) are "
                   "missing "
                   "too and are not counted here.";
}

void describe_missing_data(const Facts& facts, const MissingData& missing_data,
                           const std::vector<std::string>& states, Finding& finding) {
  const Checkpoint& checkpoint = facts.checkpoint;
  std::string what = missing_data_text(missing_data);
  finding.cause = states_text(finding.subjects, states) + ": " +
                  (what.empty() ? unrecorded_text(facts, states.size()) : what);
  if (!missing_data.named.empty() && !checkpoint.format().traits.has_index)
    finding.cause += " Only the name of such a tensor is known, not its shape.";
  finding.evidence = {{"files", capped(states)},
                      {"file_count", count_of(finding.subjects.size())},
                      {"tiles", static_cast<std::int64_t>(missing_data.tiles)},
                      {"elements", missing_data.elements},
                      {"elements_of", missing_data.lost},
                      {"tensors", capped(missing_data.tensors)},
                      {"tensor_count", count_of(missing_data.tensors.size())},
                      {"objects", capped(missing_data.objects)}};
  write_unreadable(missing_data.elements,
                   count_of(missing_data.tensors.size() + missing_data.named.size()), finding);
  if (!missing_data.lines.empty()) finding.evidence.emplace_back("tiles_of", missing_data.lines);
  if (!missing_data.boxes.empty()) finding.evidence.emplace_back("boxes", missing_data.boxes);
  if (!missing_data.boxes.empty()) finding.evidence.emplace_back("boxes_in", missing_data.inside);
  if (!missing_data.named.empty()) {
    finding.evidence.emplace_back("named_only", capped(missing_data.named));
    finding.evidence.emplace_back("named_only_count", count_of(missing_data.named.size()));
  }
  finding.subjects.insert(finding.subjects.end(), missing_data.named.begin(),
                          missing_data.named.end());
}

std::string_view last_path_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// Whether a file that is still being written has this name: "model.safetensors.incomplete".
bool has_unfinished_ending(std::string_view path) {
  constexpr std::string_view kEndings[] = {".incomplete", ".part",  ".partial", ".crdownload",
                                           ".download",   ".aria2", ".tmp"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

// True for an unfinished copy of a missing file, in its folder or in the hub's cache below it: the
// name before ".3f2a.incomplete" is the file's.
bool is_unfinished_copy(std::string_view path, const std::set<std::string_view>& missing) {
  constexpr std::string_view kHubCache = ".cache/huggingface/download/";
  if (path.starts_with(kHubCache)) path.remove_prefix(kHubCache.size());
  const std::size_t file = path.size() - last_path_part(path).size();
  for (std::size_t dot = path.find('.', file); dot != path.npos; dot = path.find('.', dot + 1)) {
    if (missing.contains(path.substr(0, dot))) return true;
  }
  return false;
}

// " a.bin.incomplete is there: ...", if the folder has unfinished copies of the missing files.
std::string unfinished_copies_text(const Checkpoint& checkpoint,
                                   const std::vector<std::string>& missing) {
  const std::set<std::string_view> names(missing.begin(), missing.end());
  std::vector<std::string> copies;
  for (const FileRow& file : checkpoint.files()) {
    if (!file.referenced && file.kind == EntryKind::kFile && has_unfinished_ending(file.path) &&
        is_unfinished_copy(file.path, names))
      copies.push_back(file.path);
  }
  if (copies.empty()) return {};
  return fmt::format(
      " {} {} there: a download, copy or save did not finish. Start the download or copy again; "
      "after a save, use the step before.",
      short_list_text(copies), copies.size() == 1 ? "is" : "are");
}

void find_missing_files(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  if (checkpoint.directory() == nullptr) return;
  std::vector<bool> missing(checkpoint.file_count(), false);
  std::vector<std::string> states;
  Finding finding{.rule = "missing-file"};
  for (std::uint32_t f = 0; f < checkpoint.file_count(); ++f) {
    const FileRow& file = checkpoint.file(FileId{f});
    if (!file.referenced || !file.safe || file.kind == EntryKind::kFile) continue;
    missing[f] = true;
    finding.subjects.push_back(file.path);
    states.push_back(file.path + " " + std::string(state_of(file.kind)));
  }
  if (finding.subjects.empty()) return;

  const std::string unfinished = unfinished_copies_text(checkpoint, finding.subjects);
  describe_missing_data(facts, data_lost_with_files(facts, missing), states, finding);
  if (auto ranks = ranks_of_files(checkpoint, missing); !ranks.empty())
    finding.evidence.emplace_back("ranks", capped(ranks));
  finding.cause += writers_of_missing_text(checkpoint, missing);
  finding.cause += unfinished;
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kMissingFile = {
    .id = "missing-file",
    .depth = Depth::kMetadata,
    .title = "A data file is missing",
    .teaches =
        "The metadata says which file holds each chunk, and one of those files is absent, a broken "
        "link, or a directory. Usual causes: an interrupted copy, a clean-up that deleted too "
        "much, or a rank whose local disk was never collected. Look for the file where the "
        "checkpoint was written, and copy it next to the others; nothing else has to change. "
        "Without it its chunks are lost; all others can still be read. `repair --fill zero`, or "
        "--fill from:CHECKPOINT, writes a checkpoint in which the missing elements are zeros or "
        "come from the other checkpoint, and a certificate that lists them. A plan with the step "
        "{\"step\": \"fill\", \"tensors\": [\"*\"], \"gone\": true} does the same for selected "
        "tensors.",
    .lesson = {.drawing = R"(
  .metadata says           on disk
  tile 0 in __0_0.distcp   __0_0.distcp
  tile 1 in __1_0.distcp   -              gone with all tiles in it
  tile 2 in __2_0.distcp   __2_0.distcp
)",
               .remedy = "Copy the file next to the others; nothing else has to change. Without it "
                         "its chunks are lost and a full load fails. `shardwright repair --fill "
                         "zero` makes a checkpoint of the rest."},
    .words = {.text = "will not load"},
    .coverage = {.text = "files are gone", .place = 4},
    .outcome = RunOutcome::kLoadFails,
    .blocks = Blocking::kReading,
    .subjects = SubjectKind::kFilesAndTheirTensors,
    .run = find_missing_files,
};

}  // namespace shw
