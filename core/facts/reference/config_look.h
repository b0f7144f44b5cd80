// Comparisons with config.json for single rules; those shared by all are in config_fit.h. Each call
// reads config.json and all names again: 3 ms for 10,000 tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/facts/reference/config_announced.h"
#include "core/facts/reference/config_names.h"
#include "core/model/checkpoint.h"
#include "core/tensor/shape.h"

namespace shw {

// A weight with its last two axes swapped: it is transposed.
struct ExchangedAxes {
  TensorId tensor{};
  Extents expected;
  std::string words;  // "hidden_size 32"
};
std::vector<ExchangedAxes> exchanged_axes(const Checkpoint& checkpoint, Progress* progress);

UnmetConfigClaims unmet_config_claims_of_folder(const Checkpoint& checkpoint, Progress* progress);

// nullopt unless all files were read and all names are of one known class.
std::optional<ConfigNames> names_of_config(const Checkpoint& checkpoint, Progress* progress);

// The values of all keys that count experts, in config.json next to files of any format: rank files
// of serving engines have one too.
std::vector<std::int64_t> expert_counts_of_config(const Checkpoint& checkpoint);

// True if all files that the checkpoint should have were read, so that absent tensors do not
// exist.
bool is_complete_folder(const Checkpoint& checkpoint);

}  // namespace shw
