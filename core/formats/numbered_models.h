// Several models of one run in a folder, as accelerate's save_state numbers them:
// "model.safetensors", "model_1.safetensors", ... or "pytorch_model.bin", "pytorch_model_1.bin".
#pragma once

#include <span>

#include "core/base/progress.h"
#include "core/formats/format_row.h"

namespace shw {

// Opens the files "model", "model_1", "model_2", ... as one checkpoint; tensors of "model_1" get
// the prefix "model_1.". Null if a number is missing between 1 and the last.
OpenedCheckpoint open_numbered_models(const std::shared_ptr<const Directory>& around,
                                      std::span<const Entry> entries, Progress* progress);

// Opens files of any names in the same way, if other files of accelerate's save_state
// (optimizer.bin, random_states_0.pkl) and a missing index show that each file is a model; null
// otherwise.
OpenedCheckpoint open_state_of_models(const std::shared_ptr<const Directory>& around,
                                      const DirectoryContents& look, Progress* progress);

}  // namespace shw
