#include "core/rules/names/adapter_base.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/base/cancellable_range.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/names/adapter_config.h"
#include "core/facts/names/adapter_prefix.h"
#include "core/facts/names/wrapper_marks.h"
#include "core/facts/reference/model_config.h"
#include "core/model/state_names.h"
#include "core/rules/names/adapter_weights.h"
#include "core/rules/names/name_rules.h"

namespace shw {
namespace {

using ByModule = std::unordered_map<std::string, TensorId>;

// All module prefixes of the base. target_parameters name "mlp.experts", which transformers joins
// in memory, while the file stores "mlp.experts.3.up_proj.weight".
using Containers = std::unordered_set<std::string>;
Containers module_prefixes_of(const Checkpoint& base, const Progress* progress) {
  Containers containers;
  for (TensorId tensor : cancellable_range(base.tensors(), progress)) {
    const std::string name = unwrapped_name(base.fqn(tensor));
    for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
      containers.insert(name.substr(0, dot));
  }
  return containers;
}

ByModule weights_by_module(const Checkpoint& base, const Progress* progress) {
  constexpr std::string_view kWeight = ".weight";
  ByModule modules;
  for (TensorId tensor : cancellable_range(base.tensors(), progress)) {
    const std::string_view fqn = base.fqn(tensor);
    if (!fqn.ends_with(kWeight)) continue;
    modules.emplace(unwrapped_name(fqn.substr(0, fqn.size() - kWeight.size())), tensor);
  }
  return modules;
}

bool has_plain_elements(Dtype dtype) {
  return dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16 ||
         dtype == Dtype::kFloat64;
}

// Removes ".base_layer" endings, which PEFT adds to a module each time it wraps it.
std::string_view without_own_layers(std::string_view module) {
  constexpr std::string_view kInner = ".base_layer";
  while (module.ends_with(kInner)) module.remove_suffix(kInner.size());
  return module;
}

// Axes of an adapter matrix and of its base weight that must have equal sizes. GPT-2's weights are
// [in, out].
struct SizeComparison {
  std::int64_t adapter = 0;
  bool fits = false;
  std::string expected;
};
SizeComparison compare_base_size(LoraPart part, ExtentsView shape, ExtentsView weight) {
  const bool is_a = part == LoraPart::kA, is_b = part == LoraPart::kB;
  SizeComparison beside;
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
  Finding finding{.rule = std::string(kAdapterContradicts.id), .severity = Severity::kError};
  finding.cause = std::move(cause);
  finding.evidence = {{"count", count_of(subjects.size())}, {"details", capped(details)}};
  finding.subjects = std::move(subjects);
  return finding;
}

// Reports whole tensors in the adapter's file (embeddings, heads) whose shape differs from the
// base's.
std::vector<Finding> whole_tensors_of_other_shape(const Checkpoint& adapter,
                                                  const Checkpoint& base) {
  std::vector<std::string> names, details;
  for (TensorId tensor : adapter.tensors()) {
    const std::string_view fqn = adapter.fqn(tensor);
    if (is_adapter_name(fqn) || !fqn.starts_with(kPeftRoot)) continue;
    const auto there = base.find(fqn.substr(kPeftRoot.size()));
    if (!there || same(adapter.shape(tensor), base.shape(*there)) ||
        !has_plain_elements(base.dtype(*there)))
      continue;
    names.emplace_back(fqn);
    details.push_back(fmt::format("{} {} next to {}", fqn, to_text(adapter.shape(tensor)),
                                  to_text(base.shape(*there))));
  }
  if (names.empty()) return {};
  Finding finding =
      base_finding(fmt::format("{} that the adapter stores in full {} a different shape from the "
                               "base ({}). PEFT refuses the file. If tokens were added, call "
                               "resize_token_embeddings() before loading the adapter.",
                               plural(names.size(), "tensor"), names.size() == 1 ? "has" : "have",
                               details.front()),
                   names, details);
  finding.severity = Severity::kWarning;
  return {std::move(finding)};
}

// The names of the base's class, where its config.json says it.
std::optional<Finding> base_prefix_finding(const Checkpoint& adapter, const Checkpoint& base) {
  if (base.directory() == nullptr) return std::nullopt;
  const auto config = read_model_config(*base.directory());
  if (!config || !*config || (*config)->architectures.size() != 1 || (*config)->has_own_code)
    return std::nullopt;
  // AutoModel builds only the body of a base that has a head. A prefix that adapter_config.json
  // alone decides is reported by another rule, with the new names.
  const std::vector<std::string> modules = modules_in_adapter(adapter);
  if (adapter.directory() == nullptr) return std::nullopt;
  const auto own = read_adapter_config(*adapter.directory());
  if (!own || !*own || !is_for_model_with_head(**own) || prefix_from_config(modules, **own))
    return std::nullopt;
  const auto prefix = prefix_from_class(modules, (*config)->architectures.front());
  if (!prefix) return std::nullopt;
  std::vector<std::string> names;
  for (TensorId tensor : adapter.tensors()) {
    const std::string_view fqn = adapter.fqn(tensor);
    if (lora_name(fqn) && fqn.starts_with(std::string(kPeftRoot) + prefix->found))
      names.emplace_back(fqn);
  }
  if (names.empty()) return std::nullopt;
  std::string escaped;
  for (char letter : prefix->found) escaped += letter == '.' ? "\\." : std::string(1, letter);
  const std::string right = std::string(kPeftRoot) + prefix->expected +
                            names.front().substr(kPeftRoot.size() + prefix->found.size());
  return base_finding(
      fmt::format("{} of {} do not match the base's module names: {} would be {} for a {}. PEFT "
                  "finds no module for them and skips them with a warning: the base model runs as "
                  "if there were no adapter. Rename them: `shardwright convert ADAPTER --rename "
                  "'base_model\\.model\\.{}(.*)={}{}$1' --to safetensors --out NEW`.",
                  human_count(names.size()), plural(adapter.tensor_count(), "name"), names.front(),
                  right, prefix->of, escaped, kPeftRoot, prefix->expected),
      names, names);
}

}  // namespace

bool is_adapter_of_base(const Checkpoint& checkpoint, const Checkpoint& reference) {
  // Adapters that train whole weights have no names of their own: PEFT's file and config decide.
  const bool is_file_of_peft =
      opened_adapter_file(checkpoint).has_value() && checkpoint.directory() != nullptr &&
      checkpoint.directory()->stat(kAdapterConfigFile).kind == EntryKind::kFile;
  return (is_adapter(checkpoint) || is_file_of_peft) && !is_adapter(reference) &&
         !opened_adapter_file(reference);
}

std::vector<Finding> adapter_against_base(const Checkpoint& adapter, const Checkpoint& base,
                                          const Progress* progress) {
  if (auto finding = base_prefix_finding(adapter, base)) return {std::move(*finding)};
  const ByModule modules = weights_by_module(base, progress);
  const Containers containers = module_prefixes_of(base, progress);
  std::vector<std::string> lacking, sizes, details;
  std::size_t looked_at = 0;
  for (TensorId tensor : cancellable_range(adapter.tensors(), progress)) {
    const std::string_view fqn = adapter.fqn(tensor);
    const auto name = lora_name(fqn);
    if (!name) continue;
    ++looked_at;
    const std::string module = unwrapped_name(without_own_layers(name->module));
    auto found = modules.find(module);
    if (found == modules.end()) {
      if (!containers.contains(module)) lacking.emplace_back(fqn);
      continue;
    }
    const ExtentsView shape = adapter.shape(tensor), weight = base.shape(found->second);
    const bool can_compare = shape.size() >= 2 && weight.size() >= 2 && volume(shape) != 0 &&
                             has_plain_elements(base.dtype(found->second));
    if (!can_compare || name->part == LoraPart::kMagnitude) continue;
    const SizeComparison beside = compare_base_size(name->part, shape, weight);
    if (beside.fits) continue;
    sizes.emplace_back(fqn);
    details.push_back(fmt::format("{} {} next to {}", fqn, to_text(shape), beside.expected));
  }
  std::vector<Finding> findings = whole_tensors_of_other_shape(adapter, base);
  if (!lacking.empty())
    findings.push_back(base_finding(
        fmt::format("{} of {} of the adapter {} to modules that the base does not have ({}). The "
                    "adapter was trained on another model, or on one whose modules have different "
                    "names; PEFT skips these tensors.",
                    human_count(lacking.size()), plural(looked_at, "tensor"),
                    lacking.size() == 1 ? "belongs" : "belong", short_list_text(lacking)),
        lacking, lacking));
  if (!sizes.empty())
    findings.push_back(base_finding(
        fmt::format("{} of {} of the adapter {} not fit the base's weights: {}. The adapter was "
                    "trained on a model of a different size, or only part of it was saved.",
                    human_count(sizes.size()), plural(looked_at, "tensor"),
                    sizes.size() == 1 ? "does" : "do", details.front()),
        sizes, details));
  return findings;
}

}  // namespace shw
