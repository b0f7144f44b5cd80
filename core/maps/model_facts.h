// Sizes of a model, from Hugging Face's config.json, Megatron's saved arguments, and the user.
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
  Sizes config;            // whole numbers and flags of config.json and its text_config
  Sizes args;              // Megatron's arguments
  std::string model_type;  // "llama"; empty: unknown
  Sizes said = {};         // from the user: value of the map by name
  std::vector<std::string> forms_named_by_user = {};
  // For comparisons: if a stacked tensor lacks some layers or experts, the gap is reported and the
  // other parts are still compared.
  bool allows_gaps = false;

  bool operator==(const ModelFacts&) const = default;
};

// `text` is the content of a config.json.
Status add_config(std::string_view text, const std::string& source, ModelFacts& facts);
// Facts from the checkpoint's folder or its parent. Unreadable files are ignored, because a map
// asks for the values that it needs.
ModelFacts facts_in_folder(const Checkpoint& checkpoint);
// Parses "groups=2", "model=llama" or "form=local". kUsage otherwise.
Status add_given_value(const std::string& text, ModelFacts& facts);

}  // namespace shw
