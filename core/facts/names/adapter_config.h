// What adapter_config.json says beside the tensors of a PEFT adapter, and what their names say.
#pragma once

#include <cstdint>
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
  std::optional<std::int64_t> rank;  // "r"
  std::vector<std::pair<std::string, std::int64_t>> rank_pattern;
  std::vector<std::string> targets;  // "target_modules" where it is a list
  std::vector<std::string> saved;    // "modules_to_save"
  bool use_dora = false;
  bool has_other_rows = false;  // its matrices are stacked or cut in another way
};

// Nothing where none lies there; an error where it is not JSON.
Result<std::optional<AdapterConfig>> read_adapter_config(const Directory& directory);

// The rank of a module ("model.layers.0.self_attn.q_proj"); nothing where a pattern that is a
// regular expression may say another.
std::optional<std::int64_t> rank_of_module(const AdapterConfig& config, std::string_view module);

// "q_proj" of "model.layers.0.self_attn.q_proj"; "self_attn.q_proj" too.
bool ends_in_module(std::string_view module, std::string_view target);

enum class LoraPart { kA, kB, kEmbeddingA, kEmbeddingB, kMagnitude };
struct LoraName {
  LoraPart part = LoraPart::kA;
  std::string module;  // behind "base_model.model."
};
// Nothing for names that are not of LoRA. The adapter's own name ("default") may stand in them.
std::optional<LoraName> lora_name(std::string_view fqn);

// A name as PEFT writes it into an adapter's file.
std::string adapter_file_name(std::string_view fqn);

// The tensors of an adapter, and nothing else.
bool is_adapter(const Checkpoint& checkpoint);

}  // namespace shw
