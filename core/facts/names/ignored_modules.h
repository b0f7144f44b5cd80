// Modules that a quantisation config exempts, by literal name. A trie of name parts makes a lookup
// linear in the parts of the tensor's name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shw {

class IgnoredModules {
 public:
  // `names` must outlive this object.
  explicit IgnoredModules(const std::vector<std::string>& names);

  // The index of the first name that is in `fqn` as complete parts: "mlp.gate" is in
  // "layers.0.mlp.gate.weight", and not in "layers.0.mlp.gate_proj.weight".
  std::optional<std::size_t> first_in(std::string_view fqn) const;
  // True if a name is of a module directly inside `parent`.
  bool has_child_of(std::string_view parent) const { return parents_.contains(parent); }

 private:
  // A trie of the parts of names. No model's module is nested as deep as kMaxParts: longer names
  // are left out, so that a lookup is linear in the parts of its name.
  using NodeId = std::uint32_t;
  static constexpr std::size_t kMaxParts = 64;

  std::map<std::pair<NodeId, std::string_view>, NodeId> children_;
  std::vector<std::optional<std::size_t>> name_index_by_node_{
      1};  // by node: the first name that ends there
  std::set<std::string_view> parents_;
};

// True if the pattern of a quantisation config surely names the module, or a module around it:
//   "lm_head*", "model.layers.*.self_attn"    a glob
//   "re:.*self_attn.*", "re:visual\\..*"      a regular expression of literals, `.`, `.*`, `$`
// The open end of a pattern ends here where a part of the name ends: "mlp.gate*" names "mlp.gate"
// and "mlp.gate.x", and "mlp.gate_proj" is left undecided. False for all other expressions.
bool surely_names(std::string_view pattern, std::string_view module);

}  // namespace shw
