// Which format is it, and open it: metadata only, no tensor byte is touched.
#pragma once

#include <memory>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/table.h"

namespace shw {

// `path`: a checkpoint directory of any of the formats, or a file that stands for one (.metadata, a
// .safetensors file). Errors: kIo (nothing there, unreadable), kDamaged (cut off, not a pickle,
// with file and offset), kUnsupported (another format: named). Damage that leaves something to look
// at is in Checkpoint::opening_findings() instead. `rows`: the formats that are known; tests add
// theirs.
OpenedCheckpoint open_checkpoint(const std::string& path, Progress* progress = nullptr,
                                 std::span<const FormatRow> rows = formats());
OpenedCheckpoint open_checkpoint(std::shared_ptr<const Directory> directory,
                                 Progress* progress = nullptr,
                                 std::span<const FormatRow> rows = formats());

// Of a checkpoint that is looked at beside another one: errors name files from where the person
// stands, so that nobody takes them for the other's.
OpenedCheckpoint open_beside(const std::string& path, Progress* progress = nullptr);

}  // namespace shw
