// Small files of the person's own (what was opened before, how the desk is set up): read by anybody
// while they are written, and written by anybody.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/io/store.h"

namespace shw::verbs {

inline constexpr std::uint64_t kMostOwnBytes = 1 << 20;

// "HOME/shardwright/NAME" with HOME from the XDG variable, else "$HOME/OTHERWISE/shardwright/NAME";
// empty where neither is said.
std::string own_file(const char* xdg, const char* home, std::string_view otherwise,
                     std::string_view name);
// All of it. kIo where it cannot be read, kDamaged where it is larger than kMostOwnBytes.
Result<std::string> read_own_file(const std::string& file);
// Under another name first, then renamed: somebody who reads meanwhile sees the old or the new.
// Folders that are missing are made on the way.
Status write_own_file(Store& store, const std::string& file, std::string_view text);

}  // namespace shw::verbs
