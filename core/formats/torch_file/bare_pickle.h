// A pickle that torch.save did not write: pickle.dump of arrays of numpy, jax or torch in dicts,
// lists and modules (detectron2's model_final.pkl). It is read and never run.
#pragma once

#include "core/formats/format_row.h"

namespace shw {

OpenedCheckpoint open_bare_pickle(std::shared_ptr<const Directory> directory, Progress* progress);

extern const FormatRow kBarePickleRow;

}  // namespace shw
