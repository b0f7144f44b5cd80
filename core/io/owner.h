// Who is making a directory: written into it, so that a later run can tell one that was abandoned
// from one that is still being made, here or on another machine that shares the disk.
#pragma once

#include <string>
#include <string_view>

#include "core/io/store.h"

namespace shw {

inline constexpr const char* kOwnerFile = ".shardwright-owner";

// Host, boot, pid space, pid and start time of this process, a line each.
std::string this_process();
// True only where `text` names a process of this machine, since its last boot and in this pid
// space, that runs no more. Anything that cannot be known is no.
bool is_dead_process(std::string_view text);

// Discards the directories beside `path` whose name holds `marker` and whose owner is dead. What
// cannot be removed stays.
void sweep_abandoned(Store& store, const std::string& path, const std::string& marker);

}  // namespace shw
