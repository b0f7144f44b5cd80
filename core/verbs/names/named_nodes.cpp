#include "core/verbs/names/named_nodes.h"

#include <algorithm>
#include <set>
#include <string>

#include "core/mesh/nodes.h"
#include "core/rules/rules.h"

namespace shw::verbs {
namespace {

// The ranks of the referenced files, or of those that the finding is about.
std::vector<std::uint32_t> ranks_of(const Checkpoint& checkpoint, const Finding* finding) {
  std::set<std::uint32_t> ranks;
  for (const FileRow& file : checkpoint.files()) {
    const bool is_meant = finding == nullptr || std::ranges::find(finding->subjects, file.path) !=
                                                    finding->subjects.end();
    if (file.referenced && file.rank && is_meant) ranks.insert(*file.rank);
  }
  return {ranks.begin(), ranks.end()};
}

}  // namespace

void add_node_names(const Checkpoint& checkpoint, std::uint32_t ranks_per_node,
                    std::vector<Finding>& findings) {
  if (ranks_per_node == 0) return;
  for (Finding& finding : findings) {
    if (finding.rule != kMissingFile.id) continue;
    const auto all = static_cast<std::uint32_t>(ranks_of(checkpoint, nullptr).size());
    const std::string nodes = nodes_text(ranks_of(checkpoint, &finding), all, ranks_per_node);
    if (!nodes.empty()) finding.cause += " They are all files of " + nodes + ".";
  }
}

}  // namespace shw::verbs
