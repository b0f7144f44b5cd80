// Detects the format of a checkpoint and opens it: reads metadata only, no tensor data.
#pragma once

#include <memory>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/table.h"

namespace shw {

// `path`: a checkpoint directory, or a file that stands for one (.metadata, a
// .safetensors file). Errors: kIo (missing, unreadable), kDamaged (truncated, not a
// pickle, with file and offset), kUnsupported (names the format). Damage that leaves a
// readable rest is in Checkpoint::opening_findings(). `rows`: the known formats; tests
// add their own.
OpenedCheckpoint open_checkpoint(const std::string& path, Progress* progress = nullptr,
                                 std::span<const FormatRow> rows = formats());
OpenedCheckpoint open_checkpoint(std::shared_ptr<const Directory> directory,
                                 Progress* progress = nullptr,
                                 std::span<const FormatRow> rows = formats());

// Opens a second checkpoint for a comparison: errors show paths relative to the working directory,
// so that they cannot be confused with the first checkpoint's.
OpenedCheckpoint open_to_compare(const std::string& path, Progress* progress = nullptr);

}  // namespace shw
