// Compares the weights of a Hugging Face folder with its config.json: sizes, and numbers of layers
// and experts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/facts/reference/size_contradiction.h"
#include "core/model/checkpoint.h"

namespace shw {

// Numbers first .. last, inclusive.
struct NumberRange {
  std::int64_t first = 0, last = 0;
};

// A list of layers or experts with another number of members than the config says.
struct CountContradiction {
  std::string row;    // "model.layers."
  std::string words;  // "num_hidden_layers 32"
  std::string key;
  std::int64_t said = 0;
  std::int64_t there = 0;
  std::vector<NumberRange> missing, extra;
  std::vector<std::string> rows;  // all lists with this contradiction: experts of each layer
};

struct ConfigFit {
  std::optional<Error> unusable;  // config.json exists but cannot be read
  std::string unknown_model;      // model_type if it is unknown, so that nothing was compared
  bool has_own_code = false;      // custom code: the model may be built differently
  std::vector<SizeContradiction> sizes;
  std::vector<CountContradiction> counts;
  std::optional<std::string> missing_head;        // "lm_head.weight"
  std::optional<std::pair<Dtype, Dtype>> dtypes;  // dtype in the config, dtype of all weights
};

// nullopt unless a config of a model is next to weights that from_pretrained would read.
std::optional<ConfigFit> fit_config(const Checkpoint& checkpoint, Progress* progress);

}  // namespace shw
