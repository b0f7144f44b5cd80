#include "core/cluster/launch.h"

#include <cstdlib>
#include <optional>

#include "core/base/words.h"

namespace shw {
namespace {

// What each launcher tells the processes that it begins.
struct Launcher {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* by;
};

// The first that says both counts. mpirun inside of a batch job sees Slurm's variables as well. Of
// Slurm only those of a step: SLURM_NTASKS and SLURM_PROCID stand in the environment of the batch
// script too, which runs once.
constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "mpirun"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "mpirun"},  // MPICH, Intel MPI
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "srun"},
};

std::optional<int> number_of(const char* text) {
  if (text == nullptr) return std::nullopt;
  std::string_view digits = text;
  auto number = take_number(digits);
  if (!number || !digits.empty() || *number > 1'000'000) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace

Launch launch_of(const std::function<const char*(const char*)>& get) {
  const char* alone = get(kAloneVariable);
  if (alone != nullptr && *alone != '\0' && std::string_view(alone) != "0") return {};
  for (const Launcher& launcher : kLaunchers) {
    auto rank = number_of(get(launcher.rank)), size = number_of(get(launcher.size));
    if (!rank || !size || *rank >= *size) continue;
    if (*size == 1) return {};
    return {*rank, *size, number_of(get(launcher.local_rank)), launcher.by};
  }
  return {};
}

Launch launch_of_this_process() {
  return launch_of([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace shw
