// The weights of a Hugging Face folder held against the config.json beside them: sizes, and how
// many layers and experts there are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"

namespace shw {

// Extents that are not what a key says, or a product of keys.
struct SizeContradiction {
  std::string words;              // "num_key_value_heads 2 x head_dim 8 = 16"
  std::vector<std::string> keys;  // "num_key_value_heads", "head_dim"
  std::int64_t said = 0;
  struct Contradicting {
    TensorId tensor{};
    std::size_t axis = 0;
  };
  std::vector<Contradicting> tensors;  // never empty
  std::size_t agreeing = 0;            // tensors of which it is true
  bool only_more_rows = false;         // of a vocabulary: padding may be all there is
};

// Numbers from `first` to `last`, both among them.
struct NumberRange {
  std::int64_t first = 0, last = 0;
};

// A row of layers or experts whose members are others than the config counts.
struct CountContradiction {
  std::string row;    // "model.layers."
  std::string words;  // "num_hidden_layers 32"
  std::string key;
  std::int64_t said = 0;
  std::int64_t there = 0;
  std::vector<NumberRange> missing, extra;
  std::vector<std::string> rows;  // all that are so: experts of each layer
};

struct ConfigFit {
  std::optional<Error> unusable;  // it lies there, and cannot be read
  std::string unknown_model;      // its model_type, where nothing was held against it
  bool has_own_code = false;      // the model may be made otherwise
  std::vector<SizeContradiction> sizes;
  std::vector<CountContradiction> counts;
  std::optional<std::string> missing_head;        // "lm_head.weight"
  std::optional<std::pair<Dtype, Dtype>> dtypes;  // as it says, as all of them are
};

// Nothing where no config of a model lies beside weights as from_pretrained reads them.
std::optional<ConfigFit> fit_config(const Checkpoint& checkpoint, Progress* progress);

}  // namespace shw
