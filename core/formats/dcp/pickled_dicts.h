// Dicts of tensors that DCP saved as one pickle each, as with
// DefaultSavePlanner(flatten_state_dict=False): .metadata names "model" as an entry that is not a
// tensor, and its item is a file of torch.save. Each tensor in it becomes a tensor of its own:
// "model" with "weight" becomes "model.weight".
#pragma once

#include "core/base/progress.h"
#include "core/formats/format_row.h"

namespace shw {

// Returns the checkpoint itself if no such entry contains a tensor.
OpenedCheckpoint with_pickled_tensors(std::shared_ptr<const Checkpoint> checkpoint,
                                      Progress* progress);

}  // namespace shw
