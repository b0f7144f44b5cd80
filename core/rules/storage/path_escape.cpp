#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

void find_escaping_names(const Integrity& integrity, std::vector<Finding>& findings) {
  if (integrity.names_outside_folder.empty()) return;
  Finding finding{.rule = "path-escape"};
  finding.cause = std::string(kIntegrityFile) + " names " +
                  plural(integrity.names_outside_folder.size(), "path") +
                  " outside the checkpoint; nothing there was opened.";
  finding.evidence = {{"paths", capped(integrity.names_outside_folder)},
                      {"path_count", count_of(integrity.names_outside_folder.size())}};
  finding.subjects = integrity.names_outside_folder;
  findings.push_back(std::move(finding));
}

void find_escaping_paths(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.integrity != nullptr) find_escaping_names(*facts.integrity, findings);
  Finding finding{.rule = "path-escape"};
  const Checkpoint& checkpoint = facts.checkpoint;
  for (const FileRow& file : checkpoint.files()) {
    if (!file.safe) finding.subjects.push_back(file.path);
  }
  if (finding.subjects.empty()) return;
  // Possibly already reported by opening, with its place in the metadata.
  for (const Finding& opened : checkpoint.opening_findings()) {
    if (opened.rule == finding.rule) return;
  }
  finding.cause = "The metadata points to " + plural(finding.subjects.size(), "path") +
                  " outside the checkpoint; nothing there was opened.";
  finding.evidence = {{"paths", capped(finding.subjects)},
                      {"path_count", count_of(finding.subjects.size())}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kPathEscape = {
    .id = "path-escape",
    .depth = Depth::kMetadata,
    .title = "A recorded path points outside the checkpoint folder",
    .teaches =
        "Every item of a checkpoint is recorded with the path of its file, relative to the "
        "checkpoint. A path that is absolute or leaves the folder with '..' makes a loader open "
        "some other file of the machine; torch never writes such a path. The metadata was edited "
        "by hand, written by a broken tool, or crafted as an attack. Shardwright never opens such "
        "paths.",
    .lesson = {.drawing = R"(
  checkpoint/            recorded path of an item
  ├── .metadata
  ├── __0_0.distcp       __0_0.distcp              inside
  └── __1_0.distcp       ../../home/me/.ssh/id     outside: never opened
)",
               .remedy = "Copy the checkpoint again from a source that you trust."},
    .words = {.text = "do not load it"},
    .outcome = RunOutcome::kRunsForeignCode,
    .blocks = Blocking::kNamed,
    .run = find_escaping_paths,
};

}  // namespace shw
