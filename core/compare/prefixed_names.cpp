#include "core/compare/prefixed_names.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace shw {

std::optional<PrefixedNames> match_names_with_one_prefix(const Checkpoint& shorter,
                                                         const Checkpoint& longer) {
  constexpr std::size_t kExamined = 1000;
  std::map<std::string_view, std::size_t> votes;
  std::size_t examined = 0;
  for (TensorId tensor : longer.tensors()) {
    if (++examined > kExamined) break;
    const std::string_view fqn = longer.fqn(tensor);
    for (std::size_t dot = fqn.find('.'); dot != fqn.npos; dot = fqn.find('.', dot + 1)) {
      if (!shorter.find(fqn.substr(dot + 1))) continue;
      ++votes[fqn.substr(0, dot + 1)];
      break;
    }
  }
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == votes.end()) return std::nullopt;
  PrefixedNames found{std::string(most->first)};
  for (TensorId tensor : shorter.tensors())
    found.count += longer.find(found.prefix + std::string(shorter.fqn(tensor))).has_value();
  if (2 * found.count < shorter.tensor_count()) return std::nullopt;
  return found;
}

}  // namespace shw
