// Who is making a directory: written into it, so that a later run can tell one that was abandoned
// from one that is still being made, here or on another machine that shares the disk.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/io/store.h"

namespace shw {

inline constexpr const char* kOwnerFile = ".shardwright-owner";

// Host, boot, pid space, pid and start time of this process, a line each.
std::string this_process();
std::string host_name();
// The hash of the file that this process runs, in eight digits; empty where it cannot be read.
std::string build_of_program();
// Host, boot and mounts: processes that say the same read files through one page cache.
std::string this_machine();
// True only where `text` names a process of this machine, since its last boot and in this pid
// space, that runs no more. Anything that cannot be known is no.
bool is_dead_process(std::string_view text);

// What the name of a directory ends in until it has its owner file: a process that is killed before
// that is told by it.
std::string name_before_owner();

// Who is making a directory, as far as this machine can tell.
enum class MadeBy : std::uint8_t { kNobody, kDeadProcess, kLiveProcess, kUnknown };
MadeBy made_by(const Store& store, const std::string& path);

// A directory that nobody makes any more becomes this process', under a name of its own that still
// holds `marker`; of several processes that try only one succeeds. Returns the name.
Result<std::string> take_over(Store& store, const std::string& path, const std::string& marker);

// This process makes it no more, and has not finished it: whoever wants to go on may, this process
// too.
Status give_up_directory(Store& store, const std::string& path);

// Discards the directories beside `path` whose name holds `marker` and whose owner is dead, but for
// those that `spared` says to leave. What cannot be removed stays.
void sweep_abandoned(Store& store, const std::string& path, const std::string& marker,
                     const std::function<bool(const std::string& found)>& spared = nullptr);

}  // namespace shw
