// Differences between config.json and the weights: announced but missing parts (vision, audio,
// additional prediction layers, quantisation), and tied matrices that are stored twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/facts/reference/model_config.h"
#include "core/model/checkpoint.h"

namespace shw {

struct UnmetConfigClaims {
  std::vector<std::string> absent_parts;  // "vision_config"
  // "num_nextn_predict_layers" and its value, if these layers are missing.
  std::optional<std::pair<std::string, std::int64_t>> absent_predictors;
  // With absent_predictors: a file that the index does not list, and its tensors of these layers.
  std::string predictors_file;
  std::size_t predictors_in_file = 0;
  // True if the class drops these layers: transformers' own classes have none, but save_pretrained
  // keeps the key.
  bool drops_predictors = false;
  std::optional<DeclaredQuantisation>
      unapplied_quantisation;            // announced, but no weight is quantised
  std::vector<TensorId> packed_weights;  // quantised, but not announced
  std::vector<TensorId> bare_float8;     // without any scale: a cast, or lost scales
  // "tie_word_embeddings" is set, but head and embedding are both stored.
  std::optional<std::pair<TensorId, TensorId>> tied;
  // "tie_word_embeddings" is set, but head and embedding have different numbers of rows.
  std::optional<std::pair<TensorId, TensorId>> tied_despite_row_counts;
  // The list "layer_types" of this part ("text_config.") has not one entry per layer.
  struct LayerTypes {
    std::string before;
    std::int64_t entries = 0, layers = 0;
  };
  std::optional<LayerTypes> layer_types;
  // The config has "tie_word_embeddings": false; head and embedding have equal shapes.
  std::optional<std::pair<TensorId, TensorId>> untied;
};

// Finds statements of config.json that the tensors contradict. `is_whole`: all files of the model
// were read, so a tensor that was not found does not exist.
UnmetConfigClaims find_unmet_config_claims(const Checkpoint& checkpoint, const ModelConfig& config,
                                           bool is_whole, Progress* progress);

}  // namespace shw
