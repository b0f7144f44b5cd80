// What config.json says beside the weights of a Hugging Face model. A file of somebody else's:
// nothing in it is taken for more than it is, and what cannot be read of it is no damage.
//
//   {"model_type": "llama", "hidden_size": 4096, "tie_word_embeddings": false, ...}
//
// Models of several parts nest one such object a part: "text_config", "vision_config".
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

// The config itself, or one that is nested in it.
struct ConfigPart {
  std::string name;  // "text_config"; empty: all of config.json
  std::string model_type;
  std::map<std::string, std::int64_t, std::less<>> sizes;  // whole numbers that are not negative
  std::map<std::string, bool, std::less<>> flags;
  bool derives_head_dim = false;  // "head_dim" is null, or does not stand there
};

// What "quantization_config" says, wherever it stands.
struct SaidQuantisation {
  std::string key;       // "text_config.quantization_config"
  std::string method;    // "gptq"; empty: not said
  bool is_whole = true;  // of weights: not of the cache of keys and values alone, or of none
};

struct ModelConfig {
  std::vector<ConfigPart> parts;  // the config itself first
  std::vector<std::string> architectures;
  std::string dtype;           // "bfloat16"; empty: not said
  bool packs_weights = false;  // quantised: shapes are those of the packing
  std::optional<SaidQuantisation> quantisation;
  bool has_own_code = false;  // "auto_map": keys may mean something else there

  const ConfigPart* find(std::string_view part) const;
};

// Nothing where none lies there, or one that names no model of transformers; an error where it
// cannot be read.
Result<std::optional<ModelConfig>> read_model_config(const Directory& directory);
Result<std::optional<ModelConfig>> parse_model_config(std::string_view json);

}  // namespace shw
