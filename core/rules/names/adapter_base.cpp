#include "core/rules/names/adapter_base.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/base/cancellable_range.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/names/adapter_config.h"
#include "core/model/state_names.h"
#include "core/rules/names/name_rules.h"

namespace shw {
namespace {

using ByModule = std::unordered_map<std::string, TensorId>;

ByModule weights_by_module(const Checkpoint& base, const Progress* progress) {
  constexpr std::string_view kWeight = ".weight";
  ByModule modules;
  for (TensorId tensor : cancellable_range(base.tensors(), progress)) {
    const std::string_view fqn = base.fqn(tensor);
    if (!fqn.ends_with(kWeight)) continue;
    modules.emplace(bare_name(fqn.substr(0, fqn.size() - kWeight.size())), tensor);
  }
  return modules;
}

bool has_plain_elements(Dtype dtype) {
  return dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16 ||
         dtype == Dtype::kFloat64;
}

// The axis of an adapter matrix that is an axis of the base weight. GPT-2's weights are [in,
// out].
struct SizeBeside {
  std::int64_t adapter = 0;
  bool fits = false;
  std::string expected;
};
SizeBeside size_beside(LoraPart part, ExtentsView shape, ExtentsView weight) {
  const bool is_a = part == LoraPart::kA, is_b = part == LoraPart::kB;
  SizeBeside beside;
  beside.adapter = is_a || part == LoraPart::kEmbeddingA ? shape[1] : shape[0];
  if (is_a || is_b) {
    beside.fits = beside.adapter == weight[0] || beside.adapter == weight[1];
    beside.expected = fmt::format("{} of {}", is_a ? "inputs" : "outputs", to_text(weight));
  } else {
    beside.fits = beside.adapter == weight[part == LoraPart::kEmbeddingA ? 0 : 1];
    beside.expected = fmt::format("an embedding {}", to_text(weight));
  }
  return beside;
}

Finding base_finding(std::string cause, std::vector<std::string> subjects,
                     const std::vector<std::string>& details) {
  Finding finding;
  finding.rule = kAdapterContradicts.id;
  finding.severity = Severity::kError;
  finding.cause = std::move(cause);
  finding.evidence = {{"count", count_of(subjects.size())}, {"details", capped(details)}};
  finding.subjects = std::move(subjects);
  return finding;
}

}  // namespace

bool is_adapter_of_base(const Checkpoint& checkpoint, const Checkpoint& reference) {
  return is_adapter(checkpoint) && !is_adapter(reference);
}

std::vector<Finding> adapter_against_base(const Checkpoint& adapter, const Checkpoint& base,
                                          const Progress* progress) {
  const ByModule modules = weights_by_module(base, progress);
  std::vector<std::string> lacking, sizes, details;
  std::size_t looked_at = 0;
  for (TensorId tensor : cancellable_range(adapter.tensors(), progress)) {
    const std::string_view fqn = adapter.fqn(tensor);
    const auto name = lora_name(fqn);
    if (!name) continue;
    ++looked_at;
    auto found = modules.find(bare_name(name->module));
    if (found == modules.end()) {
      lacking.emplace_back(fqn);
      continue;
    }
    const ExtentsView shape = adapter.shape(tensor), weight = base.shape(found->second);
    const bool can_compare = shape.size() >= 2 && weight.size() >= 2 && volume(shape) != 0 &&
                             has_plain_elements(base.dtype(found->second));
    if (!can_compare || name->part == LoraPart::kMagnitude) continue;
    const SizeBeside beside = size_beside(name->part, shape, weight);
    if (beside.fits) continue;
    sizes.emplace_back(fqn);
    details.push_back(fmt::format("{} {} beside {}", fqn, to_text(shape), beside.expected));
  }
  std::vector<Finding> findings;
  if (!lacking.empty())
    findings.push_back(base_finding(
        fmt::format("{} of {} of the adapter {} to modules that the base does not have ({}). The "
                    "adapter is of another model, or of a model whose modules have other names; "
                    "PEFT leaves these tensors out.",
                    human_count(lacking.size()), plural(looked_at, "tensor"),
                    lacking.size() == 1 ? "belongs" : "belong", some_of(lacking)),
        lacking, lacking));
  if (!sizes.empty())
    findings.push_back(base_finding(
        fmt::format("{} of {} of the adapter {} not fit the base's weights: {}. The adapter was "
                    "trained on a model of another size, or a part of it was saved.",
                    human_count(sizes.size()), plural(looked_at, "tensor"),
                    sizes.size() == 1 ? "does" : "do", details.front()),
        sizes, details));
  return findings;
}

}  // namespace shw
