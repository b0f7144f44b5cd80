// Whether this process is one of several that a launcher began with the same command, and which of
// them. Asked of the environment alone: it holds in a build without MPI too, where four processes
// would otherwise write one folder.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

namespace shw {

// Says on which machine this process is to count itself: for trying out on one what several do.
inline constexpr const char* kMachineVariable = "SHARDWRIGHT_MACHINE";

struct Launch {
  int rank = 0, size = 1;
  // Among those on its machine; nothing where the launcher does not say.
  std::optional<int> local_rank = {};
  std::string_view by = {};  // "mpirun", "srun"; empty for a process that is alone
  // All of them run on one machine, as the launcher says; false where it does not.
  bool on_one_machine = false;
  // Whether the launcher tells them how to find each other: srun does so where it is asked to.
  bool can_meet = true;
};

// Says of a process that it is alone, whatever began it: a training script that a launcher runs may
// call this program from one of its ranks.
inline constexpr const char* kAloneVariable = "SHARDWRIGHT_ALONE";

// `get` answers as std::getenv does.
Launch launch_of(const std::function<const char*(const char*)>& get);
Launch launch_of_this_process();

}  // namespace shw
