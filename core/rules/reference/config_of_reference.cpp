#include "core/rules/reference/config_of_reference.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/reference/model_config.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Keys by which a class makes its weights. Others, such as the length of the context or the number
// of experts per token, may change from one step to the next.
bool is_size_of_weights(std::string_view key) {
  constexpr auto kEndings = std::to_array<std::string_view>(
      {"hidden_size",       "d_model",         "n_embd",          "d_ff",          "ffn_dim",
       "intermediate_size", "vocab_size",      "n_layer",         "num_layers",    "n_head",
       "num_heads",         "attention_heads", "key_value_heads", "hidden_layers", "encoder_layers",
       "decoder_layers",    "head_dim",        "num_experts",     "local_experts", "routed_experts",
       "projection_dim",    "lora_rank",       "patch_size"});
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return key.ends_with(ending); });
}

// False if a tensor is missing on one side, or has another shape.
bool have_equal_shapes(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  if (c.tensor_count() == 0 || c.tensor_count() != facts.reference->tensor_count()) return false;
  for (TensorId tensor : each_tensor(facts)) {
    const auto other = facts.counterparts[index_of(tensor)];
    if (!other || facts.reference->fqn(*other) != c.fqn(tensor) ||
        !std::ranges::equal(c.shape(tensor), facts.reference->shape(*other)))
      return false;
  }
  return true;
}

std::optional<ModelConfig> config_in(const Checkpoint& checkpoint) {
  if (checkpoint.directory() == nullptr) return std::nullopt;
  auto config = read_model_config(*checkpoint.directory());
  return config ? *config : std::nullopt;
}

}  // namespace

void report_config_of_reference(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.reference == nullptr || !have_equal_shapes(facts)) return;
  const auto own = config_in(facts.checkpoint), other = config_in(*facts.reference);
  if (!own || !other || own->architectures != other->architectures) return;
  std::vector<std::string> differences;
  for (const ConfigPart& part : own->parts) {
    const ConfigPart* const beside = other->find(part.name);
    if (beside == nullptr || beside->model_type != part.model_type) continue;
    for (const auto& [key, size] : part.sizes) {
      const auto there = beside->sizes.find(key);
      if (there == beside->sizes.end() || there->second == size || !is_size_of_weights(key))
        continue;
      differences.push_back(fmt::format("{}{}{} {}, there {}", part.name,
                                        part.name.empty() ? "" : ".", key, size, there->second));
    }
  }
  if (differences.empty()) return;
  Finding finding{.rule = std::string(kConfigShape.id),
                  .severity = Severity::kWarning,
                  .subjects = {kConfigFile}};
  finding.cause = fmt::format(
      "config.json differs from the reference's ({}), though all weights have the same names and "
      "shapes: one of the two was edited. transformers builds the model from it, and refuses the "
      "weights or computes a different function.",
      short_list_text(differences));
  finding.evidence = {{"details", capped(differences)}, {"count", count_of(differences.size())}};
  findings.push_back(std::move(finding));
}

}  // namespace shw
