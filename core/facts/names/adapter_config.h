// Reads adapter_config.json of a PEFT adapter, and parses adapter tensor names.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/io/source.h"
#include "core/model/checkpoint.h"

namespace shw {

inline constexpr const char* kAdapterConfigFile = "adapter_config.json";

struct AdapterConfig {
  std::string peft_type;             // "LORA"
  std::string task;                  // "task_type": "SEQ_CLS"
  std::string base_class;            // of "auto_mapping": "LlamaModel"; only without a task
  std::optional<std::int64_t> rank;  // the LoRA rank "r"
  std::vector<std::pair<std::string, std::int64_t>> rank_pattern;
  bool has_rank_pattern = false;  // also of AdaLoRA, where it has a mask per module
  // Integer settings of adapters other than LoRA, by key: "oft_block_size". `patterns`: settings
  // per module; "n_frequency_pattern" is stored under "n_frequency".
  std::map<std::string, std::int64_t, std::less<>> numbers;
  std::map<std::string, std::vector<std::pair<std::string, std::int64_t>>, std::less<>> patterns;
  std::vector<std::string> targets;  // "target_modules" if it is a list
  std::vector<std::string> saved;    // "modules_to_save"
  bool excludes_modules = false;     // "exclude_modules": a list, or a regular expression
  bool ties_weights = false;         // "ensure_weight_tying": also modules tied to a target
  bool use_dora = false;
  bool is_limited_to_layers = false;        // "layers_to_transform"
  std::vector<std::int64_t> layers;         // layer numbers in "layers_to_transform"
  std::vector<std::string> layer_patterns;  // "layers_pattern"
  bool wraps_parameters = false;            // "target_parameters"
  std::vector<std::string> parameters;      // parameter names in "target_parameters"
  bool has_other_rows = false;              // matrices are stacked or split in another way
  bool has_unknown_rows = false;            // by a setting other than "target_parameters"
  // The factor of the product B A: alpha / r, with rslora alpha / sqrt(r).
  std::optional<double> alpha;  // "lora_alpha"
  std::vector<std::pair<std::string, double>> alpha_pattern;
  bool use_rslora = false;
  bool fan_in_fan_out = false;                 // the base's weights are [in, out]
  bool trains_tokens = false;                  // "trainable_token_indices": rows of the embedding
  std::optional<std::int64_t> virtual_tokens;  // "num_virtual_tokens" of a prompt, all submodules'
  std::vector<std::string> unusable;           // keys of LoRA whose values PEFT stops at: "r 0"
  // Initialisation of the matrices that also changes the base's weights ("pissa"); empty if none.
  std::string changes_base;
};

// nullopt if there is none; an error if it is not JSON.
Result<std::optional<AdapterConfig>> read_adapter_config(const Directory& directory);

// The LoRA rank of a module ("model.layers.0.self_attn.q_proj"); nullopt if a regular expression
// may override it.
std::optional<std::int64_t> rank_of_module(const AdapterConfig& config, std::string_view module);

// A number such as "n_frequency" for a module; nullopt as for rank_of_module().
std::optional<std::int64_t> number_of_module(const AdapterConfig& config, std::string_view key,
                                             std::string_view module);

// Factor by which B * A of a module is multiplied (LoRA: alpha / rank), for matrices of this rank.
// nullopt if the config does not give it, or gives it by a regular expression.
std::optional<double> scale_of_module(const AdapterConfig& config, std::string_view module,
                                      std::int64_t rank);

// The layer number of a module ("model.layers.3.self_attn.q_proj") for layers_to_transform: the
// first number in the name, or the one after a name in layers_pattern (PEFT 0.21; older versions
// use the last number). nullopt: PEFT finds no layer and creates no matrices.
std::optional<std::int64_t> layer_of_module(const AdapterConfig& config, std::string_view module);

// True if the last parts of `module` are `target`, for example "q_proj" or "self_attn.q_proj".
bool ends_in_module(std::string_view module, std::string_view target);

enum class LoraPart { kA, kB, kEmbeddingA, kEmbeddingB, kMagnitude };
struct LoraName {
  LoraPart part = LoraPart::kA;
  std::string module;  // after "base_model.model."
};
// nullopt if it is not a LoRA name. The name of the adapter ("default") is optional.
std::optional<LoraName> lora_name(std::string_view fqn);

// The name of a tensor in an adapter's file, as PEFT writes it.
std::string adapter_file_name(std::string_view fqn);

// True if the checkpoint consists of adapter tensors only.
bool is_adapter(const Checkpoint& checkpoint);

}  // namespace shw
