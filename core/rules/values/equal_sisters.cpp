#include "core/rules/values/equal_sisters.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/names/layer_numbers.h"
#include "core/facts/reference/alike_contents.h"
#include "core/facts/values/many_values.h"
#include "core/facts/values/value_pairs.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::size_t kMinSiblingValues = 16;

// The prefix of a name: "model.layers.0.mlp." for "model.layers.0.mlp.up_proj.weight".
std::string_view sibling_prefix(std::string_view fqn) {
  const std::size_t last = fqn.rfind('.');
  const std::size_t before = last == 0 || last == std::string_view::npos ? std::string_view::npos
                                                                         : fqn.rfind('.', last - 1);
  return before == std::string_view::npos ? std::string_view() : fqn.substr(0, before + 1);
}

// False for vectors, also with axes of extent 1: in some modules they are initialised equally and
// hardly trained (RWKV's time_mix_key and time_mix_value).
bool is_matrix(ExtentsView shape) {
  return std::count_if(shape.begin(), shape.end(), [](std::int64_t size) { return size > 1; }) > 1;
}

// Matrices that have another matrix of the same shape in their module.
std::vector<TensorId> matrices_with_siblings(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  std::map<std::tuple<std::string_view, Dtype, std::string>, std::vector<TensorId>> groups;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = c.fqn(tensor);
    if (!is_matrix(c.shape(tensor)) || !fqn.ends_with(".weight") || fqn.starts_with("optim") ||
        !layer_name_of(fqn) || !has_comparable_values(facts, tensor))
      continue;
    groups[{sibling_prefix(fqn), c.dtype(tensor), to_text(c.shape(tensor))}].push_back(tensor);
  }
  std::vector<TensorId> out;
  for (const auto& [form, group] : groups) {
    if (group.size() > 1) out.insert(out.end(), group.begin(), group.end());
  }
  return out;
}

}  // namespace

Status report_equal_siblings(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (facts.depth != Depth::kData) return {};
  SHW_TRY(const auto contents, hash_similar_tensors(facts, matrices_with_siblings(facts)));
  std::map<std::pair<std::string_view, std::string_view>, TensorId> first;
  std::vector<TensorId> seconds, firsts;
  for (const auto& [tensor, content] : contents) {
    if (content.empty()) continue;
    const auto [known, is_new] =
        first.try_emplace({sibling_prefix(c.fqn(tensor)), content}, tensor);
    if (is_new) continue;
    firsts.push_back(known->second);
    seconds.push_back(tensor);
  }
  const std::vector<bool> tells = have_more_values_than(facts, seconds, kMinSiblingValues);
  Finding finding{.rule = std::string(kDuplicateContent.id), .severity = Severity::kWarning};
  std::vector<std::string> pairs;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    if (!tells[i]) continue;
    for (TensorId tensor : {firsts[i], seconds[i]}) finding.subjects.emplace_back(c.fqn(tensor));
    pairs.push_back(fmt::format("{} and {}", c.fqn(firsts[i]), c.fqn(seconds[i])));
  }
  if (pairs.empty()) return {};
  finding.cause = fmt::format(
      "Two matrices of one module hold the same bytes ({}): one was also saved under the other's "
      "name, and the other's values are not in this checkpoint.",
      short_list_text(pairs));
  finding.evidence = {{"pairs", capped(pairs)}, {"pair_count", count_of(pairs.size())}};
  findings.push_back(std::move(finding));
  return {};
}

}  // namespace shw
