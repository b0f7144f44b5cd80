// Which format is it, and open it: metadata only, no tensor byte is touched.
#pragma once

#include <memory>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/source.h"
#include "core/model/checkpoint.h"

namespace shw {

// `path`: a checkpoint directory (DCP, rank-local DCP, Hugging Face sharded safetensors, one or
// more .safetensors files), or its .metadata. Errors: kIo (nothing there, unreadable), kDamaged
// (cut off, not a pickle, with file and offset), kUnsupported (another format: named). Damage that
// leaves something to look at is in Checkpoint::opening_findings() instead.
Result<std::shared_ptr<const Checkpoint>> open_checkpoint(const std::string& path,
                                                          Progress* progress = nullptr);
Result<std::shared_ptr<const Checkpoint>> open_checkpoint(
    std::shared_ptr<const Directory> directory, Progress* progress = nullptr);

}  // namespace shw
