// Data next to a checkpoint or between its items that nothing references.
#include <fmt/core.h>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/storage/orphans.h"
#include "core/facts/storage/own_index.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

bool is_data_file(const Checkpoint& checkpoint, const FileRow& file) {
  return file.path.ends_with(checkpoint.format().traits.data_suffix);
}

// Names the missing metadata files ("__3.metadata") of the ranks that wrote the unreferenced
// `files`; empty unless every rank has its own metadata file.
std::string missing_rank_metadata_text(const Checkpoint& checkpoint,
                                       const std::vector<const FileRow*>& files) {
  std::vector<std::string> gone;
  auto index_of_rank = checkpoint.format().traits.index_of_rank;
  for (const FileRow* file : files) {
    if (index_of_rank != nullptr && file->rank) add_subject(gone, index_of_rank(*file->rank));
  }
  if (gone.empty())
    return "an earlier save into this folder had more ranks or different file names.";
  return short_list_text(gone) + (gone.size() == 1 ? ", which" : ", which each") +
         " would describe their contents, is missing or is not a file.";
}

void find_files(const Checkpoint& checkpoint, std::vector<Finding>& findings) {
  Finding finding{.rule = "leftover-data", .severity = Severity::kInfo};
  std::uint64_t bytes = 0;
  std::vector<const FileRow*> files;
  const auto others = folders_with_own_index(checkpoint);
  for (const FileRow& file : checkpoint.files()) {
    // Ranks without data write empty files.
    bool unused = !file.referenced && file.kind == EntryKind::kFile && file.size != 0 &&
                  is_data_file(checkpoint, file) && !is_in_folder(others, file.path);
    if (!unused) continue;
    files.push_back(&file);
    finding.subjects.push_back(file.path);
    bytes = checked_add(bytes, file.size).value_or(UINT64_MAX);
  }
  if (finding.subjects.empty()) return;
  finding.cause =
      plural(finding.subjects.size(), "data file") + " (" + short_list_text(finding.subjects) +
      ", " + human_bytes(bytes) + ")" + (files.size() == 1 ? " lies" : " lie") +
      " here and nothing in the metadata points to " + (files.size() == 1 ? "it: " : "them: ") +
      missing_rank_metadata_text(checkpoint, files);
  finding.evidence = {{"files", capped(finding.subjects)},
                      {"count", count_of(finding.subjects.size())},
                      {"bytes", narrow<std::int64_t>(bytes).value_or(INT64_MAX)}};
  findings.push_back(std::move(finding));
}

void report_unreferenced_ranges(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Finding finding{.rule = "leftover-data", .severity = Severity::kInfo};
  std::vector<std::string> places;
  std::uint64_t bytes = 0;
  for (const auto& [f, gaps] : find_orphans(facts)) {
    const FileRow& file = checkpoint.files()[f];
    for (const UnclaimedRange& gap : gaps) {
      add_subject(finding.subjects, file.path);
      places.push_back(fmt::format("{} [{}, {})", file.path, gap.begin, gap.end));
      bytes += gap.size();
    }
  }
  if (places.empty()) return;
  finding.cause =
      plural(places.size(), "range") + " of the data files (" + short_list_text(places) + "; " +
      human_bytes(bytes) + (places.size() == 1 ? ") belongs" : ") belong") +
      " to no item: the metadata was rebuilt without " + (places.size() == 1 ? "it" : "them") +
      ", or an earlier, longer file was overwritten.";
  finding.evidence = {{"ranges", capped(places)},
                      {"count", count_of(places.size())},
                      {"bytes", narrow<std::int64_t>(bytes).value_or(INT64_MAX)}};
  findings.push_back(std::move(finding));
}

void find_leftover_data(const Facts& facts, std::vector<Finding>& findings) {
  const FormatTraits& traits = facts.checkpoint.format().traits;
  if (traits.data_suffix.empty()) return;
  find_files(facts.checkpoint, findings);
  // If every rank has its own metadata, replicas are recorded, so gaps are real.
  if (traits.records_every_item) report_unreferenced_ranges(facts, findings);
}

}  // namespace

const Rule kLeftoverData = {
    .id = "leftover-data",
    .depth = Depth::kMetadata,
    .title = "Stored data that the metadata does not reference",
    .teaches =
        "torch finds every chunk through the metadata, by file and byte range. Data files and byte "
        "ranges that no record names are never read. They remain when a job saves into a folder "
        "that an earlier job with more ranks had used, or when entries are removed from the "
        "metadata. They use disk space and do no harm. If chunks are missing as well, look here "
        "first.",
    .lesson = {.drawing = R"(
  .metadata says            on disk
  12 tiles in __0_0.distcp  __0_0.distcp
  12 tiles in __1_0.distcp  __1_0.distcp
  -                         __2_0.distcp   of a save that had more ranks
)",
               .remedy = "This data is never read. Delete the files only after the checkpoint is "
                         "known to be complete."},
    .run = find_leftover_data,
};

}  // namespace shw
