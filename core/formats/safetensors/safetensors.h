// Hugging Face checkpoints: plain safetensors files, one or many, and the sharded form that torch's
// HuggingFaceStorageWriter leaves, one set of files a rank.
#pragma once

#include <memory>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/source.h"
#include "core/model/checkpoint.h"

namespace shw {

// The .safetensors files of a directory as one checkpoint. Sharded files say where their chunks
// begin, but nobody says how large a tensor is: its shape is inferred as the maximum of offset +
// size, as torch does, so a lost last shard cannot be seen here. A file that cannot be read becomes
// a finding (bad-record), unless none can.
Result<std::shared_ptr<const Checkpoint>> open_safetensors(
    std::shared_ptr<const Directory> directory, Progress* progress);

}  // namespace shw
