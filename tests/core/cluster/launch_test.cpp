#include "core/cluster/launch.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

using namespace shw;

namespace {

Launch launched_with(const std::map<std::string, std::string>& environment) {
  return detect_launch([&](const char* name) -> const char* {
    auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

}  // namespace

TEST_CASE("A process knows which of several it is from what its launcher said") {
  Launch open_mpi = launched_with({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
  CHECK(open_mpi.rank == 3);
  CHECK(open_mpi.size == 4);
  CHECK(open_mpi.by == "mpirun");
  CHECK_FALSE(open_mpi.local_rank.has_value());
  Launch mpich = launched_with({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}});
  CHECK(mpich.rank == 0);
  CHECK(mpich.size == 2);
  Launch slurm =
      launched_with({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "5"}});
  CHECK(slurm.local_rank == 5);
  CHECK(slurm.rank == 1);
  CHECK(slurm.size == 8);
  CHECK(slurm.by == "srun");
  CHECK_FALSE(slurm.can_connect);  // --mpi=none
  Launch pmix =
      launched_with({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"PMIX_RANK", "1"}});
  CHECK(pmix.by == "srun");
  CHECK(pmix.can_connect);
  Launch pmi2 = launched_with({{"SLURM_PROCID", "1"},
                               {"SLURM_STEP_NUM_TASKS", "2"},
                               {"SLURM_LOCALID", "1"},
                               {"PMI_RANK", "1"},
                               {"PMI_SIZE", "2"}});
  CHECK(pmi2.by == "srun");
  CHECK(pmi2.can_connect);
  CHECK(pmi2.local_rank == 1);
  // mpirun of MPICH starts one helper per machine with srun.
  Launch hydra = launched_with(
      {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"PMI_RANK", "5"}, {"PMI_SIZE", "8"}});
  CHECK(hydra.by == "mpirun");
  CHECK(hydra.rank == 5);
  CHECK(hydra.can_connect);
  // Inside of a batch job mpirun's variables take precedence.
  Launch both = launched_with({{"SLURM_PROCID", "0"},
                               {"SLURM_STEP_NUM_TASKS", "2"},
                               {"OMPI_COMM_WORLD_RANK", "2"},
                               {"OMPI_COMM_WORLD_SIZE", "4"}});
  CHECK(both.rank == 2);
  CHECK(both.by == "mpirun");
}

TEST_CASE("Processes are on one machine only where their launcher says so") {
  auto of_open_mpi = [](const char* here) {
    return launched_with({{"OMPI_COMM_WORLD_RANK", "1"},
                          {"OMPI_COMM_WORLD_SIZE", "4"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", here}})
        .on_one_machine;
  };
  CHECK(of_open_mpi("4"));
  CHECK_FALSE(of_open_mpi("2"));
  CHECK_FALSE(of_open_mpi("all"));
  auto of_slurm = [](const char* nodes) {
    return launched_with({{"SLURM_PROCID", "1"},
                          {"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_STEP_NUM_NODES", nodes},
                          {"PMIX_RANK", "1"}})
        .on_one_machine;
  };
  CHECK(of_slurm("1"));
  CHECK_FALSE(of_slurm("2"));
  CHECK_FALSE(launched_with({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}).on_one_machine);
}

TEST_CASE("launch: several processes join where that was asked for, and nowhere else") {
  std::map<std::string, std::string> job = {{"OMPI_COMM_WORLD_RANK", "1"},
                                            {"OMPI_COMM_WORLD_SIZE", "4"}};
  auto joined = [&](std::string_view asked) {
    return requested_launch(asked,
                            [&](const char* name) -> const char* {
                              auto found = job.find(name);
                              return found == job.end() ? nullptr : found->second.c_str();
                            })
        .size;
  };
  CHECK(joined("") == 1);
  CHECK(joined("mpi") == 4);
  job["SHARDWRIGHT_PROCESSES"] = "mpi";
  CHECK(joined("") == 4);
  CHECK(joined("alone") == 1);  // the option overrides the variable
  job["SHARDWRIGHT_PROCESSES"] = "alone";
  CHECK(joined("") == 1);
}

TEST_CASE("A process that nobody multiplied is alone") {
  CHECK(launched_with({}).size == 1);
  CHECK(launched_with({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).size == 1);
  // A single batch script for a job of eight tasks.
  CHECK(launched_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).size == 1);
  CHECK(launched_with({{"PMI_RANK", "-1"}, {"PMI_SIZE", "many"}}).size == 1);
  CHECK(launched_with({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}).size == 1);
  CHECK(launched_with({{"OMPI_COMM_WORLD_RANK", "1"},
                       {"OMPI_COMM_WORLD_SIZE", "4"},
                       {"SHARDWRIGHT_ALONE", "1"}})
            .size == 1);
}
