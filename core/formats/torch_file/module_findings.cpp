#include "core/formats/torch_file/module_findings.h"

#include <fmt/core.h>

#include <set>

#include "core/base/words.h"
#include "core/formats/common/how_read_finding.h"
#include "core/formats/common/tensor_subclass.h"
#include "core/formats/torch_file/pickled_module.h"

namespace shw {

std::vector<Finding> module_findings(const PickleTree& tree,
                                     const std::map<NodeId, std::size_t>& modules,
                                     const std::string& path) {
  constexpr std::size_t kMaxModules = 8;
  std::vector<Finding> findings;
  for (const auto& [module, count] : modules) {
    if (findings.size() == kMaxModules) break;
    const std::string type = class_of_pickled(tree, module);
    Finding finding = how_read_finding(
        path,
        is_script_object(tree, module)
            ? fmt::format("{} holds a TorchScript program of the class {}. Its {} are read by "
                          "their attribute path, as its state_dict() names them; no code of "
                          "it is run or checked.",
                          path, type, plural(count, "tensor"))
            : fmt::format("{} holds a whole module of the class {}. Its {} are read by their "
                          "attribute path, as its state_dict() names them; the class is not "
                          "imported, and its other attributes are not read.",
                          path, type, plural(count, "tensor")));
    finding.evidence = {{"class", type}, {"tensors", static_cast<std::int64_t>(count)}};
    auto held = module_tensors(tree, module, path);
    if (held && !held->left_out.empty()) {
      finding.cause += fmt::format(" Left out as no part of a state_dict(): {}.",
                                   short_list_text(held->left_out));
      finding.evidence.emplace_back("left_out", static_cast<std::int64_t>(held->left_out.size()));
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::optional<Finding> subclass_finding(const PickleTree& tree,
                                        const std::map<NodeId, std::size_t>& subclasses,
                                        const std::string& path) {
  if (subclasses.empty()) return std::nullopt;
  std::set<std::string> types;
  std::size_t count = 0;
  for (const auto& [call, wrapped] : subclasses) {
    types.insert(tensor_subclass(tree, call).type);
    count += wrapped;
  }
  const std::vector<std::string> names(types.begin(), types.end());
  Finding finding = how_read_finding(
      path, fmt::format("{} holds {} of the class {}. Each is read as the tensors that it wraps, "
                        "by their attributes ({} in all); the class is not imported, and its other "
                        "attributes are not read.",
                        path, plural(subclasses.size(), "tensor"), short_list_text(names), count));
  finding.evidence = {{"classes", names},
                      {"tensors", static_cast<std::int64_t>(subclasses.size())},
                      {"wrapped", static_cast<std::int64_t>(count)}};
  return finding;
}

}  // namespace shw
