#include "core/rules/reference/transposing_step.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "core/base/spelling.h"
#include "core/facts/names/name_families.h"
#include "core/formats/format_row.h"

namespace shw {
namespace {

constexpr std::size_t kMaxPatterns = 4;

bool can_be_rewritten(const Checkpoint& c) {
  return c.format().traits.has_index || c.format().rewrite == Rewrite::kFiles;
}

bool matches_others(const Checkpoint& c, const std::string& pattern,
                    const std::set<TensorId>& wanted) {
  for (TensorId tensor : c.tensors()) {
    if (!wanted.contains(tensor) && matches_pattern(pattern, std::string(c.fqn(tensor))))
      return true;
  }
  return false;
}

std::set<std::string> patterns_for_tensors(const Checkpoint& c, std::span<const TensorId> tensors) {
  const std::set<TensorId> wanted(tensors.begin(), tensors.end());
  std::set<std::string> patterns, refused;
  for (TensorId tensor : tensors) {
    const std::string fqn(c.fqn(tensor));
    std::string family = without_numbers(fqn);
    if (!patterns.contains(family) && !refused.contains(family))
      (matches_others(c, family, wanted) ? refused : patterns).insert(family);
    if (refused.contains(family)) patterns.insert(fqn);
    if (patterns.size() > kMaxPatterns) break;
  }
  return patterns;
}

}  // namespace

std::optional<std::string> transposing_step(const Checkpoint& checkpoint,
                                            std::span<const TensorId> tensors) {
  if (tensors.empty() || !can_be_rewritten(checkpoint)) return std::nullopt;
  const std::size_t axes = checkpoint.shape(tensors.front()).size();
  const bool have_same_axes = std::all_of(tensors.begin(), tensors.end(), [&](TensorId tensor) {
    return checkpoint.shape(tensor).size() == axes;
  });
  const std::set<std::string> patterns = patterns_for_tensors(checkpoint, tensors);
  if (axes < 2 || !have_same_axes || patterns.size() > kMaxPatterns) return std::nullopt;
  std::vector<std::size_t> order(axes);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::swap(order[axes - 2], order[axes - 1]);
  const nlohmann::ordered_json step{
      {"step", "permute-dims"}, {"tensors", patterns}, {"order", order}};
  return step.dump();
}

}  // namespace shw
