// The owner file of an output directory names the process that writes it, so that a later run can
// tell an abandoned directory from one in use, also on another machine that shares the disk.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/io/store.h"

namespace shw {

inline constexpr const char* kOwnerFile = ".shardwright-owner";

// Host, boot id, pid namespace, pid and start time of this process, one per line.
std::string own_process_identity();
std::string host_name();
// Eight hex digits of the hash of this program's executable; empty if it cannot be read.
std::string executable_hash();
// Host, boot id and mount namespace: processes with equal values share one page cache.
std::string own_machine_identity();
// True only if `text` names a process of this machine, boot and pid namespace that has ended. False
// if that cannot be determined.
bool is_dead_process(std::string_view text);

// Suffix of a directory's name until its owner file exists: identifies the owner if the process is
// killed before it writes the file.
std::string owner_name_suffix();

// State of the process that owns a directory, as far as this machine can tell.
enum class OwnerState : std::uint8_t { kNobody, kDeadProcess, kLiveProcess, kUnknown };
OwnerState owner_state(const Store& store, const std::string& path);

// Renames an abandoned directory so that this process owns it. The new name still contains `marker`
// and is returned. Of several processes that try, only one succeeds.
Result<std::string> claim_directory(Store& store, const std::string& path,
                                    const std::string& marker);

// Gives up ownership of an unfinished directory, so that this or another process can continue
// it.
Status release_directory(Store& store, const std::string& path);

// Deletes abandoned directories next to `path` whose name contains `marker`, except those for which
// `spared` returns true. Directories that cannot be deleted are left.
void delete_abandoned_directories(
    Store& store, const std::string& path, const std::string& marker,
    const std::function<bool(const std::string& found)>& spared = nullptr);

}  // namespace shw
