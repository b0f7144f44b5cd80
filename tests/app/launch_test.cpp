// The program as one of several processes of a launcher.
#include <doctest/doctest.h>

#include <filesystem>

#include "app/answer.h"
#include "app/process.h"

using namespace shw::test;

namespace {

const std::vector<std::string> kFirst = {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4",
                                         "SHARDWRIGHT_PROCESSES=mpi"};
const std::vector<std::string> kThird = {"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4",
                                         "SHARDWRIGHT_PROCESSES=mpi"};

}  // namespace

TEST_CASE("Several processes of a verb for one refuse, and write nothing") {
  Scratch scratch;
  std::string checkpoint = demo() + "/step_9000", out = scratch / "out";
  std::vector<std::string> words = {"report", checkpoint, "--out", out, "--json"};
  Run first = shardwright(words, kFirst);
  CHECK(first.code == 3);
  CHECK(contains(parsed(first.out)["error"]["message"].get<std::string>(), "mpirun started 4"));
  Run third = shardwright(words, kThird);
  CHECK(third.code == 3);
  CHECK(third.out.empty());  // all processes know the result, and only the first prints it
  CHECK(third.err.empty());
  CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("A program that runs under a launcher may begin one that is alone") {
  std::vector<std::string> environment = kThird;
  environment.push_back("SHARDWRIGHT_ALONE=1");
  Run run = shardwright({"info", demo() + "/step_9000", "--json"}, environment);
  CHECK(run.code == 0);
  CHECK(parsed(run.out)["tensors"] == 1142);
}

TEST_CASE("launch: a program that a rank of a job begins is alone where nobody asked for more") {
  const std::vector<std::string> job = {"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4"};
  for (const char* verb : {"info", "check", "hash"}) {
    Run run = shardwright({verb, demo() + "/step_9000", "--json"}, job);
    CHECK(run.code <= 1);
    CHECK(parsed(run.out)["tool"].contains("commit"));
  }
  Scratch scratch;
  const std::string out = scratch / "out";
  Run made = shardwright({"reshard", demo() + "/step_9000", "--mesh", "dp=2", "--out", out, "--yes",
                          "--processes", "alone"},
                         job);
  CHECK(made.code != 3);
}

TEST_CASE("launch: a word that is neither mpi nor alone is refused") {
  Run run = shardwright({"info", demo() + "/step_9000"}, {"SHARDWRIGHT_PROCESSES=four"});
  CHECK(run.code == 3);
  CHECK(contains(run.err, "Use mpi or alone"));
}

TEST_CASE(
    "Processes that srun does not tell of each other refuse in one voice, and write nothing") {
  Scratch scratch;
  const std::string out = scratch / "out";
  const std::vector<std::string> words = {
      "reshard", demo() + "/step_9000", "--mesh", "dp=2", "--out", out,
      "--yes",   "--processes",         "mpi"};
  Run first = shardwright(words, {"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=4"});
  CHECK(first.code == 3);
  CHECK(contains(first.err, "srun started 4 processes but does not tell them"));
  CHECK(contains(first.err, "srun --mpi=pmix"));
  Run third = shardwright(words, {"SLURM_PROCID=2", "SLURM_STEP_NUM_TASKS=4"});
  CHECK(third.code == 3);
  CHECK(third.out.empty());
  CHECK(third.err.empty());
  CHECK_FALSE(std::filesystem::exists(out));
}
