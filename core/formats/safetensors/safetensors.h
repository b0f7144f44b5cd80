// Hugging Face checkpoints: plain safetensors files, one or several, and the sharded form of
// torch's HuggingFaceStorageWriter with files per rank.
#pragma once

#include <memory>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/source.h"
#include "core/model/checkpoint.h"

namespace shw {

// Opens the .safetensors files of a directory as one checkpoint. Sharded files contain offsets of
// chunks but not shapes of tensors. A shape is inferred as the maximum of offset + size, as in
// torch, so a missing last shard is not detected here. Unreadable files become findings
// (bad-record), unless no file is readable.
Result<std::shared_ptr<const Checkpoint>> open_safetensors(
    std::shared_ptr<const Directory> directory, Progress* progress);

}  // namespace shw
