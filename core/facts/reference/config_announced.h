// What config.json announces and the weights do not have: a part that sees or hears, layers that
// predict further tokens, quantised weights; and two matrices that it ties.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/facts/reference/model_config.h"
#include "core/model/checkpoint.h"

namespace shw {

struct ConfigAnnounced {
  std::vector<std::string> absent_parts;  // "vision_config"
  // "num_nextn_predict_layers", and how many.
  std::optional<std::pair<std::string, std::int64_t>> absent_predictors;
  std::optional<SaidQuantisation> left_quantisation;  // of weights none of which is quantised
  std::vector<TensorId> packed_weights;               // quantised, and config.json does not say so
  // "tie_word_embeddings" is said, and both of these are stored: head and embedding.
  std::optional<std::pair<TensorId, TensorId>> tied;
};

// `is_whole`: all files of the model were read, and what is not there is not there.
ConfigAnnounced find_announced(const Checkpoint& checkpoint, const ModelConfig& config,
                               bool is_whole, Progress* progress);

}  // namespace shw
