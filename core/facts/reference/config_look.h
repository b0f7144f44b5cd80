// What single rules ask of config.json beyond what all of them share (config_fit.h). Each call
// reads config.json and walks the names once more: 3 ms for 10,000 tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/facts/reference/config_announced.h"
#include "core/model/checkpoint.h"
#include "core/tensor/shape.h"

namespace shw {

// A weight whose last two axes are exchanged: it is transposed.
struct ExchangedAxes {
  TensorId tensor{};
  Extents expected;
  std::string words;  // "hidden_size 32"
};
std::vector<ExchangedAxes> exchanged_axes(const Checkpoint& checkpoint, Progress* progress);

ConfigAnnounced announced_by_config(const Checkpoint& checkpoint, Progress* progress);

// What any key that counts experts says.
std::vector<std::int64_t> expert_counts_of_config(const Checkpoint& checkpoint);

// Whether all files that the checkpoint should have were read: what is not there may be in what was
// not.
bool is_complete_folder(const Checkpoint& checkpoint);

}  // namespace shw
