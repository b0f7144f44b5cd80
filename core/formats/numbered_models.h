// Several models of one run side by side, as accelerate's save_state numbers them:
// "model.safetensors", "model_1.safetensors", ... or "pytorch_model.bin", "pytorch_model_1.bin".
#pragma once

#include <span>

#include "core/base/progress.h"
#include "core/formats/format_row.h"

namespace shw {

// One checkpoint, in which names begin with the file's name ("model_1."); null where the numbers
// are not all there from 1 on.
OpenedCheckpoint open_numbered_models(const std::shared_ptr<const Directory>& around,
                                      std::span<const Entry> entries, Progress* progress);

// The same where what accelerate saves beside models (optimizer.bin, random_states_0.pkl) and no
// index says that each file is a model, whatever names its tensors have; null elsewhere.
OpenedCheckpoint open_state_of_models(const std::shared_ptr<const Directory>& around,
                                      const DirectoryLook& look, Progress* progress);

}  // namespace shw
