// Whether transformers' Trainer can resume from the files of one step.
#pragma once

#include <optional>

#include "core/model/checkpoint.h"

namespace shw {

// Reports a half-saved state of transformers' Trainer (trainer_state.json): it loads the states of
// optimizer and scheduler both or not at all, silently (Trainer._load_optimizer_and_scheduler).
// Only an info, because people publish folders without one of them on purpose. A folder that has
// Trainer's arguments and an optimizer but no step was meant for resuming, and its save did not
// finish.
std::optional<Finding> half_saved_trainer_finding(const Checkpoint& checkpoint);

}  // namespace shw
