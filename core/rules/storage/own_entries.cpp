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
  finding.cause = "Ranks saved different values under the name of " +
                  plural(entries.size(), "entry") +
                  (entries.size() == 1 ? " that is not a tensor (" : " that are not tensors (") +
                  short_list_text(entries) +
                  "). Each rank loads its own value from this checkpoint, but repair, reshard and "
                  "convert keep only the lowest rank's value.";
  finding.evidence = {{"count", count_of(entries.size())}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kOwnEntries = {
    .id = "own-entries",
    .depth = Depth::kHeaders,
    .title = "Ranks saved different values under one name",
    .teaches =
        "When every rank saves separately (use_collectives=False), each has its own index and "
        "loads back what it saved, such as its random generator state or its data loader position. "
        "Nothing is wrong with that. But a checkpoint with a single index holds one value per "
        "name, so repair, reshard and convert copy the lowest rank's values, leave out the others, "
        "and name them in the certificate. Keep this checkpoint if the per-rank values are needed.",
    .lesson = {.drawing = R"(
  __0.metadata   seed = 1234   loader.position = 4096
  __1.metadata   seed = 1235   loader.position = 5120   stays behind

  repaired       seed = 1234   loader.position = 4096   every rank gets these
)",
               .remedy = "Nothing to do. Keep this checkpoint while the per-rank values are "
                         "needed, or set them again after loading."},
    .words = {.text = "are left out by repair, reshard and convert", .as_info = true},
    .outcome = RunOutcome::kNone,
    .run = find_own_entries,
};

}  // namespace shw
