// Data files were changed after the metadata that describes them.
#include <algorithm>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/explained.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kSlack = 60 * kSecond;  // clocks of nodes differ, and copying takes time

void find_newer_data(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  const FormatTraits& traits = checkpoint.format().traits;
  if (checkpoint.directory() == nullptr || !traits.index_comes_last) return;
  Entry metadata = checkpoint.directory()->stat(std::string(traits.index_file));
  if (metadata.kind != EntryKind::kFile || metadata.modified_ns <= 0) return;
  Finding finding{.rule = "data-newer"};
  std::int64_t latest = 0, data_files = 0;
  for (const FileRow& file : checkpoint.files()) {
    if (!file.safe || !file.referenced || file.kind != EntryKind::kFile) continue;
    ++data_files;
    std::int64_t modified = checkpoint.directory()->stat(file.path).modified_ns;
    if (modified / kSecond - metadata.modified_ns / kSecond <= kSlack / kSecond) continue;
    finding.subjects.push_back(file.path);
    latest = std::max(latest, modified / kSecond - metadata.modified_ns / kSecond);
  }
  if (finding.subjects.empty()) return;
  // Not reported alone, since copying resets times; it explains ranges that do not fit.
  auto misfits = explained_by(findings, kShortFile.id);
  bool both = std::any_of(finding.subjects.begin(), finding.subjects.end(),
                          [&](const std::string& file) { return misfits.contains(file); });
  finding.severity = both ? Severity::kWarning : Severity::kInfo;
  std::int64_t count = count_of(finding.subjects.size());
  finding.cause =
      plural(finding.subjects.size(), "data file") + (count == 1 ? " was" : " were") +
      " changed up to " + human_count(static_cast<std::uint64_t>(latest)) +
      " seconds after the metadata was written" +
      (both
           ? ", and recorded ranges are no longer in them: a later save into this folder overwrote "
             "them and was interrupted."
           : ": the files were copied in a different order, or an interrupted later save overwrote "
             "them. If that save had the same layout, ranges and checksums still match.");
  finding.evidence = {{"files", capped(finding.subjects)},
                      {"file_count", count},
                      {"data_files", data_files},
                      {"seconds_later", latest},
                      {"ranges_fit", !both}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kDataNewer = {
    .id = "data-newer",
    .depth = Depth::kMetadata,
    .title = "Data files are newer than the metadata",
    .teaches =
        "The metadata is written last. A data file that is much newer may come from a second save "
        "into the same folder that was interrupted before it wrote its own metadata. Such a folder "
        "opens as if it were complete and mixes two steps. Timestamps alone prove nothing, because "
        "copying resets them. If recorded ranges or checksums do not match either, a later save is "
        "the likely cause. Restore the folder from the original copy.",
    .lesson = {.drawing = R"(
  __0_0.distcp    11:40     written anew by a later save
  __1_0.distcp    10:02
  .metadata       10:03     describes the files of 10:02
)",
               .remedy = "Check with --data: if checksums or ranges do not match, a later save "
                         "overwrote the files. If they match, that save may have had the same "
                         "layout: compare with a copy of the same step (--against)."},
    .hint = {.what = "whether the data files belong to this metadata",
             .needs = "integrity.json, or --against a copy of the same step",
             .remains_open_with_spec = true,
             .remains_open_at_data = true},
    .run = find_newer_data,
};

}  // namespace shw
