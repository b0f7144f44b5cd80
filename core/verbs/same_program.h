// check of two checkpoints that one program names: what differs is looked at once more in the
// layout of another program, where known mistakes of converters have names.
#pragma once

#include <memory>
#include <optional>

#include "core/base/progress.h"
#include "core/rules/check.h"
#include "core/verbs/map_options.h"

namespace shw::verbs {

// Takes the place of findings that say less of the same tensors. Leaves the report as it is where
// nothing differs from the reference, no map knows the names, or sizes of the model are not known.
void name_wrong_conversions(const std::shared_ptr<const Checkpoint>& checkpoint,
                            const std::shared_ptr<const Checkpoint>& reference,
                            const MapOptions& mapping, std::optional<Depth> depth,
                            CheckReport& report, Progress* progress);

}  // namespace shw::verbs
