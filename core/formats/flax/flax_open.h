// Opens trees of arrays written by flax.serialization: transformers' flax_model.msgpack, in one or
// several files, and checkpoint_N of flax.training.checkpoints.
#pragma once

#include <memory>

#include "core/formats/format_row.h"

namespace shw {

inline constexpr std::string_view kFlaxSuffix = ".msgpack";

extern const Format kFlaxFormat;
Result<bool> has_flax(const DirectoryContents& look);
OpenedCheckpoint open_flax(std::shared_ptr<const Directory> directory, Progress* progress);

}  // namespace shw
