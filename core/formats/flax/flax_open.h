// Trees of arrays that flax.serialization wrote: flax_model.msgpack of transformers, in one file or
// several, and checkpoint_N of flax.training.checkpoints.
#pragma once

#include <memory>

#include "core/formats/format_row.h"

namespace shw {

inline constexpr std::string_view kFlaxSuffix = ".msgpack";

extern const Format kFlaxFormat;
Result<bool> has_flax(const DirectoryLook& look);
OpenedCheckpoint open_flax(std::shared_ptr<const Directory> directory, Progress* progress);

}  // namespace shw
