// Text of a tensor or tile for the clipboard: Python, a shell command, or an issue report.
#pragma once

#include <optional>
#include <string>

#include "core/session/snapshot.h"

namespace shw {

// state_dict["a.b"][0:9, 4096:8192]; without a chunk the whole tensor.
std::string python_text(const Checkpoint& checkpoint, TensorId tensor,
                        std::optional<ChunkId> chunk);
// The shell command that shows the same tensor.
std::string show_command(const Snapshot& snapshot, TensorId tensor);
std::string json_text(const Checkpoint& checkpoint, TensorId tensor, std::optional<ChunkId> chunk);
std::string markdown_text(const Checkpoint& checkpoint, TensorId tensor,
                          std::optional<ChunkId> chunk);

}  // namespace shw
