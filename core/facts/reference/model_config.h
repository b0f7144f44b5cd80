// Reads config.json of a Hugging Face model. The file is not trusted; an unreadable one is not
// damage of the checkpoint.
//
//   {"model_type": "llama", "hidden_size": 4096, "tie_word_embeddings": false, ...}
//
// Multi-part models nest such an object per part: "text_config", "vision_config".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kLabelNames = "id2label";

// The top-level config or a nested part.
struct ConfigPart {
  std::string name;  // "text_config"; empty: top level
  std::string model_type;
  // Non-negative integers, and the number of names in kLabelNames.
  std::map<std::string, std::int64_t, std::less<>> sizes;
  std::map<std::string, bool, std::less<>> flags;
  std::optional<std::int64_t> layer_types;  // entries of the list "layer_types"
  bool derives_head_dim = false;            // "head_dim" is null or missing
};

// The settings in "quantization_config", wherever it is nested, or in a separate file.
struct DeclaredQuantisation {
  std::string key;       // "text_config.quantization_config"; empty: a separate file
  std::string method;    // "gptq"; empty: not given
  bool is_whole = true;  // false: applies only to the key-value cache
  std::string file = "config.json";
};

struct ModelConfig {
  std::vector<ConfigPart> parts;  // the top-level config first
  std::vector<std::string> architectures;
  std::string dtype;           // "bfloat16"; empty: not given
  bool packs_weights = false;  // quantised: shapes are those of packed weights
  std::optional<DeclaredQuantisation> quantisation;
  bool has_own_code = false;        // "auto_map": custom code, where keys may mean something else
  bool is_of_transformers = false;  // "transformers_version": save_pretrained wrote it

  const ConfigPart* find(std::string_view part) const;
};

// nullopt if there is none or it names no transformers model; an error if it cannot be
// read.
Result<std::optional<ModelConfig>> read_model_config(const Directory& directory);
Result<std::optional<ModelConfig>> parse_model_config(std::string_view json);
// The top level alone, also of a config without a model_type (Medusa's heads); nullopt if there is
// no such file.
Result<std::optional<ConfigPart>> read_config_numbers(const Directory& directory);

// "vit_base_patch16_224" of a config.json that timm wrote; empty for other folders.
std::string timm_architecture(const Directory& directory);

}  // namespace shw
