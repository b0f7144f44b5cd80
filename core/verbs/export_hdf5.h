// export-hdf5: an HDF5 file that maps a checkpoint.
#pragma once

#include "core/hdf5_view/export_hdf5.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

// Writes to `options.out`, by default CHECKPOINT.h5; never into the checkpoint. Findings of a check
// are added to their tensors.
Result<Exported> export_hdf5(const Opened& opened, const VerbOptions& verb_options,
                             ExportOptions options, Progress* progress = nullptr);

}  // namespace shw::verbs
