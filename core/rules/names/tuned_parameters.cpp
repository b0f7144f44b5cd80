#include "core/rules/names/tuned_parameters.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/names/wrapper_marks.h"
#include "core/rules/names/adapter_weights.h"
#include "core/rules/names/half_adapters.h"
#include "core/rules/names/name_rules.h"

namespace shw {
namespace {

using Words = std::string_view;

// A parameter of a module, and another one that a module never has without it.
struct TunedParameter {
  Words type, ending;
  Words needed_by = {};
  bool is_half = false;  // single halves are reported as incomplete pairs (half_adapters.h)
};
constexpr auto kTunedParameters = std::to_array<TunedParameter>({
    {"ADALORA", ".lora_A", ".lora_B", true},
    {"ADALORA", ".lora_B", ".lora_A", true},
    {"ADALORA", ".lora_E", ".lora_A"},
    {"BOFT", ".boft_R", ".boft_s"},
    {"BOFT", ".boft_s", ".boft_R"},
    {"VBLORA", ".vblora_logits_A", ".vblora_logits_B"},
    {"VBLORA", ".vblora_logits_B", ".vblora_logits_A"},
    {"VBLORA", ".vblora_logits_A_topk_weights", ".vblora_logits_A_topk_indices"},
    {"VBLORA", ".vblora_logits_A_topk_indices", ".vblora_logits_A_topk_weights"},
    {"VBLORA", ".vblora_logits_B_topk_weights", ".vblora_logits_B_topk_indices"},
    {"VBLORA", ".vblora_logits_B_topk_indices", ".vblora_logits_B_topk_weights"},
    {"RANDLORA", ".randlora_lambda", ".randlora_gamma", true},
    {"RANDLORA", ".randlora_gamma", ".randlora_lambda", true},
    {"RANDLORA", ".randlora_A", ".randlora_B"},
    {"RANDLORA", ".randlora_B", ".randlora_A"},
    {"VERA", ".vera_lambda_b", ".vera_lambda_d", true},
    {"VERA", ".vera_lambda_d", ".vera_lambda_b", true},
    {"LOHA", ".hada_w1_a", ".hada_w1_b", true},
    {"LOHA", ".hada_w1_b", ".hada_w1_a", true},
    {"LOHA", ".hada_w2_a", ".hada_w2_b", true},
    {"LOHA", ".hada_w2_b", ".hada_w2_a", true},
    {"ROAD", ".road_alpha", ".road_theta"},
    {"ROAD", ".road_theta", ".road_alpha"},
    {"LOKR", ".lokr_w1"},
    {"LOKR", ".lokr_w1_a", ".lokr_w1_b", true},
    {"LOKR", ".lokr_w2"},
    {"LOKR", ".lokr_w2_a", ".lokr_w2_b", true},
    {"OFT", ".oft_R.weight"},
    {"FOURIERFT", ".fourierft_spectrum"},
    {"IA3", ".ia3_l"},
    {"HRA", ".hra_u"},
    {"LN_TUNING", ".ln_tuning_layers.weight"},
    {"C3A", ".c3a_kernel"},
    {"MISS", ".miss_block"},
    {"SHIRA", ".shira_weight", ".shira_indices"},
    {"SHIRA", ".shira_indices", ".shira_weight"},
    {"BEFT", ".beft_bias"},
    {"WAVEFT", ".waveft_spectrum"},
    {"TRAINABLE_TOKENS", ".trainable_tokens_delta"},
    {"DEFT", ".deft_P", ".deft_R"},
    {"DEFT", ".deft_R", ".deft_P"},
    {"DELORA", ".delora_A", ".delora_B"},
    {"DELORA", ".delora_B", ".delora_A"},
    {"DELORA", ".delora_lambda", ".delora_A"},
    {"DELORA", ".delora_w_norm", ".delora_A"},
    {"FROD", ".frod_lambda_l", ".frod_lambda_s_values"},
    {"FROD", ".frod_lambda_s_values", ".frod_lambda_l"},
    {"GRALORA", ".gralora_A", ".gralora_B"},
    {"GRALORA", ".gralora_B", ".gralora_A"},
    {"HIRA", ".hira_A", ".hira_B"},
    {"HIRA", ".hira_B", ".hira_A"},
    {"OSF", ".osf_svd_params.U_low", ".osf_svd_params.S_low"},
    {"OSF", ".osf_svd_params.S_low", ".osf_svd_params.V_low"},
    {"OSF", ".osf_svd_params.V_low", ".osf_svd_params.U_low"},
    {"PEANUT", ".peanut_A.weight", ".peanut_B.weight"},
    {"PEANUT", ".peanut_B.weight", ".peanut_A.weight"},
    {"POLY", ".poly_lora_A", ".poly_lora_B"},
    {"POLY", ".poly_lora_B", ".poly_lora_A"},
    {"POLY", ".poly_router.module_logits", ".poly_lora_A"},
    {"PSOFT", ".psoft_R.weight", ".psoft_R.vector_a"},
    {"TINYLORA", ".tinylora_A", ".tinylora_B"},
    {"TINYLORA", ".tinylora_B", ".tinylora_A"},
    {"TINYLORA", ".tinylora_P", ".tinylora_A"},
    {"MULTITASK_PROMPT_TUNING", "prefix_task_rows", "prefix_task_cols"},
    {"MULTITASK_PROMPT_TUNING", "prefix_task_cols", "prefix_task_rows"},
    {"MULTITASK_PROMPT_TUNING", "prompt_embeddings", "prefix_task_rows"},
    {"PVERA", ".pvera_lambda_b", ".pvera_lambda_d"},
    {"PVERA", ".pvera_lambda_d", ".pvera_lambda_b"},
});

// An axis that has the number of a key; "r" may have a pattern of its own. LoKr saves a factor
// whole where r is large, under another name.
struct TunedSize {
  Words type, ending;
  std::size_t axis = 0, dims = 2;
  Words key = "r";
};
constexpr auto kTunedSizes = std::to_array<TunedSize>({
    {"LOHA", ".hada_w1_b"},
    {"LOHA", ".hada_w2_b"},
    {"LOKR", ".lokr_w1_b"},
    {"LOKR", ".lokr_w2_b"},
    {"VERA", ".vera_lambda_d", 0, 1},
    {"HRA", ".hra_u", 1},
    {"MISS", ".miss_block"},
    {"RANDLORA", ".randlora_lambda"},
    {"ADALORA", ".lora_A", 0, 2, "init_r"},
    {"ADALORA", ".lora_B", 1, 2, "init_r"},
    {"ADALORA", ".lora_E", 0, 2, "init_r"},
    {"BOFT", ".boft_R", 3, 4, "boft_block_size"},
    {"BOFT", ".boft_R", 1, 4, "boft_block_num"},
    {"C3A", ".c3a_kernel", 2, 3, "block_size"},
    {"FOURIERFT", ".fourierft_spectrum", 0, 1, "n_frequency"},
    {"VBLORA", ".vblora_logits_A", 0, 3},
    {"VBLORA", ".vblora_logits_B", 1, 3},
    {"VBLORA", ".vblora_logits_A_topk_weights", 0, 3},
    {"VBLORA", ".vblora_logits_B_topk_weights", 1, 3},
    {"VBLORA", ".vblora_logits_A", 2, 3, "num_vectors"},
    {"VBLORA", ".vblora_logits_B", 2, 3, "num_vectors"},
    {"VBLORA", ".vblora_vector_bank", 0, 2, "num_vectors"},
    {"VBLORA", ".vblora_vector_bank", 1, 2, "vector_length"},
    {"PROMPT_TUNING", "prompt_embeddings", 1, 2, "token_dim"},
    {"P_TUNING", "prompt_embeddings", 1, 2, "token_dim"},
});

std::string module_before(Words fqn, Words ending) {
  fqn.remove_suffix(ending.size());
  if (fqn.starts_with(kPeftRoot)) fqn.remove_prefix(kPeftRoot.size());
  return std::string(fqn);
}

std::optional<std::int64_t> number_in_config(const AdapterConfig& config, Words key, Words module) {
  return key == "r" ? rank_of_module(config, module) : number_of_module(config, key, module);
}

// "oft_R.weight" has a row per block, and in each row the b * (b - 1) / 2 elements above the
// diagonal of a block of b * b. PEFT changes a block size that does not divide the inputs.
std::optional<std::string> mismatched_oft_block(const AdapterConfig& config, Words module,
                                                ExtentsView shape) {
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 26;
  if (shape.size() != 2 || shape[0] < 2 || shape[1] <= 0 || shape[1] > kMaxElements ||
      shape[0] > kMaxElements)
    return std::nullopt;
  std::int64_t size = 2;
  while (size * (size - 1) / 2 < shape[1]) ++size;
  if (size * (size - 1) / 2 != shape[1]) return std::nullopt;
  const std::int64_t inputs = shape[0] * size;
  const auto differs = [&](const char* key, std::int64_t saved) -> std::optional<std::string> {
    const auto said = number_in_config(config, key, module);
    if (!said || *said == 0 || *said == saved || inputs % *said != 0) return std::nullopt;
    return fmt::format("blocks of {0} x {0} elements, {1} {2}", size, key, *said);
  };
  const auto block = number_of_module(config, "oft_block_size", module);
  return block && *block != 0 ? differs("oft_block_size", size) : differs("r", shape[0]);
}

// A prefix has a key and a value per layer.
std::optional<std::string> mismatched_prefix(const AdapterConfig& config, ExtentsView shape) {
  const auto layers = number_of_module(config, "num_layers", ""),
             width = number_of_module(config, "token_dim", "");
  constexpr std::int64_t kLargest = std::int64_t{1} << 20;
  if (shape.size() != 2 || !layers || !width || *layers > kLargest || *width > kLargest ||
      shape[1] == 2 * *layers * *width)
    return std::nullopt;
  return fmt::format("2 x num_layers {} x token_dim {} = {} columns", *layers, *width,
                     2 * *layers * *width);
}

// What the config says of a tensor's size, if the tensor has another one.
std::optional<std::string> contradiction_of(const AdapterConfig& config, Words fqn,
                                            ExtentsView shape) {
  constexpr Words kOft = ".oft_R.weight";
  if (config.peft_type == "OFT" && fqn.ends_with(kOft))
    return mismatched_oft_block(config, module_before(fqn, kOft), shape);
  if (config.peft_type == "PREFIX_TUNING" && fqn == "prompt_embeddings")
    return mismatched_prefix(config, shape);
  // AdaLoRA prunes ranks, and writes a pattern of those that it kept.
  if (config.peft_type == "ADALORA" && config.has_rank_pattern) return std::nullopt;
  for (const TunedSize& one : kTunedSizes) {
    if (config.peft_type != one.type || !fqn.ends_with(one.ending) || shape.size() != one.dims)
      continue;
    const auto said = number_in_config(config, one.key, module_before(fqn, one.ending));
    if (said && *said != 0 && *said != shape[one.axis]) return fmt::format("{} {}", one.key, *said);
  }
  return std::nullopt;
}

bool has_tensor_ending_in(const Facts& facts, Words ending) {
  for (TensorId tensor : each_tensor(facts)) {
    if (facts.checkpoint.fqn(tensor).ends_with(ending)) return true;
  }
  return false;
}

// Reports tensors that all modules of an adapter share and that are missing.
void report_lost_shared(const Facts& facts, const AdapterConfig& config,
                        std::vector<Finding>& findings) {
  Words cause;
  if (config.peft_type == "VBLORA" && !has_tensor_ending_in(facts, ".vblora_vector_bank"))
    cause =
        "The adapter has no vblora_vector_bank, from which VBLoRA builds the matrices of all "
        "modules. PEFT initializes it with random vectors, so all training is lost.";
  // Without save_projection neither is saved, because PEFT draws both again from a seed.
  const bool has_a = has_tensor_ending_in(facts, ".vera_A"),
             has_b = has_tensor_ending_in(facts, ".vera_B");
  if (config.peft_type == "VERA" && has_a != has_b)
    cause = has_b ? "The adapter has vera_B and no vera_A, the two random matrices that all its "
                    "modules share. PEFT refuses to load it: save_projection says that both were "
                    "saved."
                  : "The adapter has vera_A and no vera_B, the two random matrices that all its "
                    "modules share. PEFT refuses to load it: save_projection says that both were "
                    "saved.";
  if (cause.empty()) return;
  findings.push_back(
      adapter_contradiction(std::string(cause), {*opened_adapter_file(facts.checkpoint)}));
}

void report_lost_factors(const Facts& facts, const AdapterConfig& config,
                         std::vector<Finding>& findings) {
  if (config.peft_type != "LOKR") return;
  const LokrHalves found = lokr_halves(facts);
  if (found.missing.empty()) return;
  findings.push_back(adapter_contradiction(
      fmt::format(
          "{} of {} of the adapter {} only one of two factors ({} {} missing). PEFT initializes "
          "the other from scratch, so that training is lost with only a warning.",
          human_count(found.missing.size()), plural(found.modules, "module"),
          found.missing.size() == 1 ? "has" : "have", short_list_text(found.missing),
          found.missing.size() == 1 ? "is" : "are"),
      found.missing));
}

}  // namespace

bool has_ending_of_type(const AdapterConfig& config, std::string_view fqn) {
  return std::any_of(kTunedParameters.begin(), kTunedParameters.end(), [&](const auto& one) {
    return config.peft_type == one.type && one.ending.starts_with('.') && fqn.ends_with(one.ending);
  });
}

std::optional<std::string> tuned_module(const AdapterConfig& config, std::string_view fqn) {
  for (const TunedParameter& one : kTunedParameters) {
    // RandLoRA's "base_model.randlora_A" is common to all modules.
    if (config.peft_type == one.type && fqn.ends_with(one.ending) && fqn.starts_with(kPeftRoot))
      return module_before(fqn, one.ending);
  }
  return std::nullopt;
}

void report_lost_parameters(const Facts& facts, const AdapterConfig& config,
                            std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (!opened_adapter_file(c)) return;
  report_lost_shared(facts, config, findings);
  report_lost_factors(facts, config, findings);
  for (const TunedParameter& one : kTunedParameters) {
    if (config.peft_type != one.type || one.needed_by.empty()) continue;
    std::vector<std::string> missing;
    std::size_t modules = 0;
    for (TensorId tensor : each_tensor(facts)) {
      const Words fqn = c.fqn(tensor);
      if (!fqn.ends_with(one.needed_by)) continue;
      ++modules;
      std::string name(fqn.substr(0, fqn.size() - one.needed_by.size()));
      name += one.ending;
      if (!c.find(name)) missing.push_back(std::move(name));
    }
    if (missing.empty() || (one.is_half && missing.size() * 2 <= modules)) continue;
    findings.push_back(adapter_contradiction(
        fmt::format("{} of {} of the adapter {} no {} ({}). PEFT starts {} from scratch, so that "
                    "training is lost with only a warning.",
                    human_count(missing.size()), plural(modules, "module"),
                    missing.size() == 1 ? "has" : "have",
                    one.ending.substr(one.ending.starts_with('.') ? 1 : 0),
                    short_list_text(missing), missing.size() == 1 ? "it" : "them"),
        missing));
  }
}

void report_mismatched_sizes(const Facts& facts, const AdapterConfig& config,
                             std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (!opened_adapter_file(c)) return;
  std::vector<std::string> subjects;
  std::string example;
  for (TensorId tensor : each_tensor(facts)) {
    const Words fqn = c.fqn(tensor);
    const auto said = contradiction_of(config, fqn, c.shape(tensor));
    if (!said) continue;
    if (example.empty()) example = fmt::format("{} {}, {}", fqn, to_text(c.shape(tensor)), *said);
    subjects.emplace_back(fqn);
  }
  if (subjects.empty()) return;
  findings.push_back(adapter_contradiction(
      fmt::format("{} of the adapter {} a size that differs from adapter_config.json ({}). PEFT "
                  "builds the modules from the config and then refuses the shapes.",
                  plural(subjects.size(), "tensor"), subjects.size() == 1 ? "has" : "have",
                  example),
      subjects));
}

}  // namespace shw
