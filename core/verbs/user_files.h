// Small files of the user (recent checkpoints, settings), which several processes may read and
// write concurrently.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/io/store.h"

namespace shw::verbs {

inline constexpr std::uint64_t kMaxOwnBytes = 1 << 20;

// "HOME/shardwright/NAME" with HOME from the XDG variable, else "$HOME/OTHERWISE/shardwright/NAME";
// empty if neither is set.
std::string user_file_path(const char* xdg, const char* home, std::string_view otherwise,
                           std::string_view name);
// The whole file. kIo if unreadable, kDamaged if larger than kMaxOwnBytes.
Result<std::string> read_user_file(const std::string& file);
// Writes a temporary file and renames it, so that concurrent readers see the old or the new
// content. Creates missing folders.
Status write_user_file(Store& store, const std::string& file, std::string_view text);

}  // namespace shw::verbs
