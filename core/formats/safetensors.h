// Hugging Face checkpoints: sharded safetensors as torch's writer leaves them, and plain files.
#pragma once

#include <memory>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/source.h"
#include "core/model/checkpoint.h"

namespace shw {

Result<std::shared_ptr<const Checkpoint>> open_safetensors(
    std::shared_ptr<const Directory> directory, Progress* progress);

}  // namespace shw
