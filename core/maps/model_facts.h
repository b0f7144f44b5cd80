// What a checkpoint and the files beside it say of the sizes of their model: config.json of Hugging
// Face, the arguments that Megatron saves, and what a person says.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

struct ModelFacts {
  using Sizes = std::map<std::string, std::int64_t, std::less<>>;
  Sizes config;            // whole numbers and flags of config.json, of its text_config too
  Sizes args;              // of Megatron's arguments
  std::string model_type;  // "llama"; empty: not known
  Sizes said = {};         // by a person: a value of the map by its name
  std::vector<std::string> said_forms = {};

  bool operator==(const ModelFacts&) const = default;
};

// `text` is that of a config.json.
Status add_config(std::string_view text, const std::string& source, ModelFacts& facts);
// What lies in the checkpoint's folder, or in the folder around it. What cannot be read is passed
// over: a map asks for what it needs.
ModelFacts facts_beside(const Checkpoint& checkpoint);
// "groups=2", "model=llama", "form=local". kUsage where it is none of them.
Status add_said(const std::string& text, ModelFacts& facts);

}  // namespace shw
