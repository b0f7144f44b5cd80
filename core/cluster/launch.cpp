#include "core/cluster/launch.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <optional>

#include "core/base/words.h"

namespace shw {
namespace {

// The environment variables of one launcher.
struct Launcher {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* by;
};

// The first launcher that sets both rank and size wins. mpirun inside a batch job also sees Slurm's
// variables. Only the variables of a Slurm step count: SLURM_NTASKS and SLURM_PROCID are also set
// for the batch script, which runs once.
constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "mpirun"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "mpirun"},  // MPICH, Intel MPI
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "srun"},
};

std::optional<int> number_of(const char* text) {
  if (text == nullptr) return std::nullopt;
  std::string_view digits = text;
  auto number = consume_number(digits);
  if (!number || !digits.empty() || *number > 1'000'000) return std::nullopt;
  return static_cast<int>(*number);
}

bool has_any(const std::function<const char*(const char*)>& get,
             std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return get(name) != nullptr; });
}

// A process started by srun is labelled srun even if srun sets MPICH's variables (--mpi=pmi2).
Launch launch_of_srun(Launch launch, const std::function<const char*(const char*)>& get) {
  const Launcher& srun = kLaunchers[std::size(kLaunchers) - 1];
  if (number_of(get(srun.rank)) != launch.rank || number_of(get(srun.size)) != launch.size)
    return launch;
  launch.by = srun.by;
  launch.local_rank = number_of(get(srun.local_rank));
  launch.on_one_machine = number_of(get("SLURM_STEP_NUM_NODES")) == 1;
  launch.can_connect = has_any(get, {"PMIX_RANK", "PMI_RANK", "PMI_FD"});
  return launch;
}

}  // namespace

Launch detect_launch(const std::function<const char*(const char*)>& get) {
  const char* alone = get(kAloneVariable);
  if (alone != nullptr && *alone != '\0' && std::string_view(alone) != "0") return {};
  for (const Launcher& launcher : kLaunchers) {
    auto rank = number_of(get(launcher.rank)), size = number_of(get(launcher.size));
    if (!rank || !size || *rank >= *size) continue;
    if (*size == 1) return {};
    Launch launch{*rank, *size, number_of(get(launcher.local_rank)), launcher.by};
    const bool of_open_mpi = &launcher == &kLaunchers[0];
    if (!of_open_mpi) return launch_of_srun(launch, get);
    launch.on_one_machine = number_of(get("OMPI_COMM_WORLD_LOCAL_SIZE")) == launch.size;
    return launch;
  }
  return {};
}

Launch requested_launch(std::string_view asked,
                        const std::function<const char*(const char*)>& get) {
  if (asked.empty()) {
    const char* variable = get(kProcessesVariable);
    if (variable != nullptr) asked = variable;
  }
  return asked == "mpi" ? detect_launch(get) : Launch{};
}

Launch detect_own_launch() {
  return detect_launch([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace shw
