#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

void find_hash_mismatches(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.integrity == nullptr) return;
  const Integrity& integrity = *facts.integrity;
  Finding finding{.rule = "file-hash"};
  std::vector<std::string> hashes;
  for (const FileHash& file : integrity.differing) {
    finding.subjects.push_back(file.name);
    hashes.push_back(file.name + ": recorded " + file.expected + ", is " + file.actual);
  }
  for (const std::string& name : integrity.missing) finding.subjects.push_back(name);
  if (finding.subjects.empty()) return;
  finding.cause = std::string(kIntegrityFile) + " was made of other bytes: ";
  if (!integrity.differing.empty())
    finding.cause += plural(integrity.differing.size(), "file") +
                     (integrity.differing.size() == 1 ? " has" : " have") + " another SHA-256";
  if (!integrity.missing.empty())
    finding.cause += (integrity.differing.empty() ? "" : ", ") +
                     plural(integrity.missing.size(), "file") +
                     (integrity.missing.size() == 1 ? " is" : " are") + " not there";
  finding.cause += " (" + short_list_text(finding.subjects) + ").";
  finding.evidence = {{"hashes", capped(hashes)},
                      {"files_that_differ", count_of(integrity.differing.size())},
                      {"files_not_there", count_of(integrity.missing.size())},
                      {"files_listed", count_of(integrity.listed)}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kFileHash = {
    .id = "file-hash",
    .depth = Depth::kMetadata,
    .title = "A file is not the one whose hash was recorded",
    .teaches =
        "Megatron-LM can leave a list next to a checkpoint, integrity.json, with the SHA-256 of "
        "every file in its folder. A file with another hash is not the one that was saved: a copy "
        "that was cut short or mixed with another save, a disk that changed bits, or somebody who "
        "wrote into it afterwards (the metadata too: after a repair in place, or a tool that "
        "rewrites it, the list is as old as it was). A hash says that bytes differ, not which: "
        "checksums of items, where they have any, say that (bad-record). Files are hashed with "
        "--data only; that one is missing is seen without.",
    .lesson = {.drawing = R"(
  integrity.json     __0_0.distcp   9f86d081884c7d65...
  on disk            __0_0.distcp   60303ae22b998861...     other bytes
)",
               .remedy = "Fetch the file again from where it was written; where the metadata alone "
                         "differs and was changed on purpose, make the list again.",
               .link = "https://github.com/NVIDIA/Megatron-LM/pull/4305"},
    .words = {.text = "files are not those that were saved"},
    .damages_bytes = true,
    .run = find_hash_mismatches,
};

}  // namespace shw
