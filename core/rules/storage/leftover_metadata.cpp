// Files that an interrupted save leaves next to a complete checkpoint.
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

void find_leftover_metadata(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Finding finding{.rule = "leftover-metadata", .severity = Severity::kInfo};
  for (const FileRow& file : checkpoint.files()) {
    if (!file.referenced && file.kind == EntryKind::kFile && file.path.ends_with(".metadata.tmp"))
      finding.subjects.push_back(file.path);
  }
  if (finding.subjects.empty()) return;
  std::uint64_t bytes = 0;
  for (const FileRow& file : checkpoint.files()) {
    if (!file.referenced && file.path.ends_with(".metadata.tmp")) bytes += file.size;
  }
  finding.cause = short_list_text(finding.subjects) + " (" + human_bytes(bytes) +
                  ") is next to the metadata: another save into this folder, earlier or later than "
                  "this one, was interrupted.";
  finding.evidence = {{"files", capped(finding.subjects)},
                      {"bytes", static_cast<std::int64_t>(bytes)}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kLeftoverMetadata = {
    .id = "leftover-metadata",
    .depth = Depth::kMetadata,
    .title = "A save into this folder was interrupted",
    .teaches =
        "torch writes the metadata as .metadata.tmp and renames it when everything is written; the "
        "rename makes a checkpoint complete. The temporary file remains only if the job ended "
        "before the rename. If that save came after the complete one, some of its data files may "
        "have replaced older ones; a check with --data shows it, because recorded ranges and "
        "checksums no longer match. Otherwise the file is harmless and can be deleted.",
    .lesson = {.drawing = R"(
  __0_0.distcp    10:02
  .metadata       10:03     complete
  .metadata.tmp   11:40     a second save, which did not get to its rename
)",
               .remedy =
                   "Check with --data. If it finds nothing else, delete the .tmp file; otherwise "
                   "copy the folder again from the original."},
    .run = find_leftover_metadata,
};

}  // namespace shw
