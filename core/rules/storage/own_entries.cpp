// Non-tensor entries that differ between ranks when each rank has its own index. Each rank loads
// its own; results made from the checkpoint have only the lowest rank's.
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

void find_own_entries(const Facts& facts, std::vector<Finding>& findings) {
  const std::vector<std::string>& entries = facts.own_entries.differing;
  if (entries.empty()) return;
  Finding finding{.rule = "own-entries", .severity = Severity::kInfo, .subjects = entries};
  finding.cause =
      "Ranks saved other things under the name of " + plural(entries.size(), "entry") +
      (entries.size() == 1 ? " that is not a tensor (" : " that are not tensors (") +
      short_list_text(entries) +
      "). Each of them gets its own back from here, and what is made of this checkpoint "
      "(repair, reshard, convert) has the lowest rank's alone.";
  finding.evidence = {{"count", count_of(entries.size())}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kOwnEntries = {
    .id = "own-entries",
    .depth = Depth::kHeaders,
    .title = "Each rank has entries of its own",
    .teaches =
        "Where every rank saves by itself (use_collectives=False) each has an index of its own, "
        "and gets back what it saved: the state of its generator, the place of its data loader. "
        "Nothing is wrong with that. But a checkpoint with one index has one of each, and so has "
        "whatever is made of this one: the lowest rank's are copied, the others' are left out, and "
        "the certificate names them. It is said so that nobody deletes this checkpoint for another "
        "that cannot give every rank its own.",
    .lesson = {.drawing = R"(
  __0.metadata   seed = 1234   loader.position = 4096
  __1.metadata   seed = 1235   loader.position = 5120   stays behind

  repaired       seed = 1234   loader.position = 4096   every rank gets these
)",
               .remedy = "Nothing has to be done. Keep this checkpoint for as long as its ranks' "
                         "own entries are needed, or set them again after loading."},
    .words = {.text = "are left out in what is made of this", .as_info = true},
    .outcome = RunOutcome::kNone,
    .run = find_own_entries,
};

}  // namespace shw
