// Explains differences between two checkpoints of one program: compares them in the layout of
// another program too, where known conversion mistakes can be recognised.
#pragma once

#include <memory>
#include <optional>

#include "core/base/progress.h"
#include "core/rules/check.h"
#include "core/verbs/map_options.h"

namespace shw::verbs {

// Replaces less specific findings about the same tensors. Does nothing if the checkpoints are
// equal, no map knows the names, or sizes of the model are unknown.
void report_wrong_conversions(const std::shared_ptr<const Checkpoint>& checkpoint,
                              const std::shared_ptr<const Checkpoint>& reference,
                              const MapOptions& mapping, std::optional<Depth> depth,
                              CheckReport& report, Progress* progress);

}  // namespace shw::verbs
