#include "core/formats/torch_file/module_findings.h"

#include <fmt/core.h>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/torch_file/pickled_module.h"

namespace shw {

std::vector<Finding> module_findings(const PickleTree& tree,
                                     const std::map<NodeId, std::size_t>& modules,
                                     const std::string& path) {
  constexpr std::size_t kMostModules = 8;
  std::vector<Finding> findings;
  for (const auto& [module, count] : modules) {
    if (findings.size() == kMostModules) break;
    const std::string type = class_of_pickled(tree, module);
    Finding finding = bad_record(
        path, fmt::format("{} holds a whole module of the class {}. Its {} are read by their "
                          "attribute path, as its state_dict() names them; the class is not "
                          "imported, and its other attributes are not read.",
                          path, type, plural(count, "tensor")));
    finding.severity = Severity::kInfo;
    finding.evidence = {{"class", type}, {"tensors", static_cast<std::int64_t>(count)}};
    auto held = module_tensors(tree, module, path);
    if (held && !held->left_out.empty()) {
      finding.cause +=
          fmt::format(" Left out as no part of a state_dict(): {}.", some_of(held->left_out));
      finding.evidence.emplace_back("left_out", static_cast<std::int64_t>(held->left_out.size()));
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace shw
