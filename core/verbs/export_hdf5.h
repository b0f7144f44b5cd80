// export-hdf5: a checkpoint as an HDF5 file that maps it.
#pragma once

#include "core/hdf5_view/export_hdf5.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

// `options.out` may be empty: CHECKPOINT.h5. It never lies in the checkpoint. What a check finds
// is told with the tensors that it names.
Result<Exported> export_hdf5(const Opened& opened, const VerbOptions& verb_options,
                             ExportOptions options, Progress* progress = nullptr);

}  // namespace shw::verbs
