// Detects whether this process is one of several that a launcher started with the same command, and
// which one. Reads only environment variables, so that it also works in a build without MPI, where
// four processes would otherwise write one folder.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

namespace shw {

// Overrides the machine name of this process, to test several machines on one.
inline constexpr const char* kMachineVariable = "SHARDWRIGHT_MACHINE";

struct Launch {
  int rank = 0, size = 1;
  // rank within the machine; nullopt if the launcher does not set it
  std::optional<int> local_rank = {};
  std::string_view by = {};  // "mpirun", "srun"; empty for a single process
  // True if the launcher reports that all processes run on one machine.
  bool on_one_machine = false;
  // False if the launcher gives the processes no way to connect: srun needs an option for it.
  bool can_connect = true;
};

// Set by the user to make this process run alone although a launcher started it: a training script
// may call this program from one of its ranks.
inline constexpr const char* kAloneVariable = "SHARDWRIGHT_ALONE";

// Environment variable that makes processes work together, like --processes; its values are "mpi"
// and "alone". Not the default, because a job that mpirun started may call this program from one of
// its ranks, which must not wait for the others.
inline constexpr const char* kProcessesVariable = "SHARDWRIGHT_PROCESSES";

// `get` behaves like std::getenv.
Launch detect_launch(const std::function<const char*(const char*)>& get);
Launch detect_own_launch();
// The launch that this process joins: detect_launch() if `asked`, or otherwise the variable, is
// "mpi"; a single process if not.
Launch requested_launch(std::string_view asked, const std::function<const char*(const char*)>& get);

}  // namespace shw
