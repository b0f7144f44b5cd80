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
  finding.cause = std::string(kIntegrityFile) + " was computed from other bytes: ";
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
    .title = "A file does not match its recorded hash",
    .teaches =
        "Megatron-LM can write integrity.json next to a checkpoint, with the SHA-256 of every file "
        "in the folder. A file with a different hash is not the one that was saved: the copy was "
        "cut "
        "short or mixed with another save, the disk changed bits, or a program wrote into it (a "
        "repair in place or a tool that rewrites metadata does not update the list). The hash "
        "shows that bytes differ, not which ones; checksums of items show that where they exist "
        "(bad-record). Files are hashed only with --data; a missing file is found without it.",
    .lesson = {.drawing = R"(
  integrity.json     __0_0.distcp   9f86d081884c7d65...
  on disk            __0_0.distcp   60303ae22b998861...     other bytes
)",
               .remedy = "Copy the file again from the original. If only the metadata differs and "
                         "was changed on purpose, write integrity.json again.",
               .link = "https://github.com/NVIDIA/Megatron-LM/pull/4305"},
    .words = {.text = "files are not those that were saved"},
    .damages_bytes = true,
    .run = find_hash_mismatches,
};

}  // namespace shw
