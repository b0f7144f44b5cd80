// `stats`, run as a process.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/answer.h"
#include "app/process.h"

using namespace shw::test;

namespace {

const std::string kWhole = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_moe_ep/ckpt";

}  // namespace

TEST_CASE("stats tells all tensors, or those that are named, as text and as JSON") {
  Run all = shardwright({"stats", kWhole, "--json"});
  CHECK(all.code == 0);
  auto tensors = parsed(all.out)["tensors"];
  CHECK(tensors.size() == 6);
  CHECK(tensors["model.norm.weight"]["elements"] == 10);
  Run some = shardwright({"stats", kWhole, "*.norm.*", "model.layers.3.moe.gate.weight", "--json"});
  CHECK(some.code == 0);
  CHECK(parsed(some.out)["tensors"].size() == 2);
  CHECK(parsed(some.out)["tensors"]["model.norm.weight"] == tensors["model.norm.weight"]);
  Run text = shardwright({"stats", kWhole});
  CHECK(text.code == 0);
  CHECK(contains(text.out, "model.norm.weight"));
  CHECK(contains(text.out, "6 tensors"));
}

TEST_CASE("stats answers a name that is not there with the one that was meant") {
  Run run = shardwright({"stats", kWhole, "model.norm.wieght"});
  CHECK(run.code == 1);
  CHECK(run.out.empty());
  CHECK(contains(run.err, "did you mean model.norm.weight?"));
  CHECK(shardwright({"stats", kWhole, "nothing.*"}).code == 1);
}

TEST_CASE("stats says what counted, and makes up no card") {
  Run cpu = shardwright({"stats", kWhole, "--json", "--device", "cpu"});
  CHECK(cpu.code == 0);
  CHECK(parsed(cpu.out)["device"]["used"] == "cpu");
  CHECK(parsed(cpu.out)["device"]["why"] == "it was asked for");
  Run automatic = shardwright({"stats", kWhole, "--json"});
  CHECK(contains(parsed(automatic.out)["device"]["why"].get<std::string>(), "not worth"));
  CHECK(parsed(automatic.out)["tensors"] == parsed(cpu.out)["tensors"]);
  Run text = shardwright({"stats", kWhole, "--device", "cpu"});
  CHECK(contains(text.err, "Elements were counted on cpu: it was asked for."));
  CHECK(shardwright({"stats", kWhole, "--device", "gpu"}).code == 3);
  Run missing = shardwright({"stats", kWhole, "--json", "--device", "cuda:4095"});
  CHECK(missing.code == 4);
  CHECK(contains(parsed(missing.out)["error"]["message"].get<std::string>(), "GPU"));
}

TEST_CASE("stats of a checkpoint that lost a file tells the rest and exits 2") {
  Scratch scratch;
  std::filesystem::copy(kWhole, scratch / "ckpt", std::filesystem::copy_options::recursive);
  bool removed = false;
  for (const auto& entry : std::filesystem::directory_iterator(scratch / "ckpt")) {
    if (removed || entry.path().extension() != ".distcp") continue;
    removed = std::filesystem::remove(entry.path());
  }
  REQUIRE(removed);
  Run run = shardwright({"stats", scratch / "ckpt", "--json"});
  CHECK(run.code == 2);
  std::int64_t unread = 0, elements = 0;
  auto tensors = parsed(run.out)["tensors"];
  for (const auto& tensor : tensors) {
    CHECK(tensor.contains("unread") == tensor.contains("error"));
    unread += tensor.value("unread", std::int64_t{0});
    elements += tensor["elements"].get<std::int64_t>();
  }
  CHECK(unread > 0);
  CHECK(elements > 0);
}

namespace {

// Two steps of one run; the second lost the end of a file.
void make_run(const Scratch& scratch) {
  for (const char* step : {"/step_100", "/step_200"}) {
    std::filesystem::create_directories(scratch / "run");
    std::filesystem::copy(kWhole, scratch / "run" + step, std::filesystem::copy_options::recursive);
  }
}

}  // namespace

TEST_CASE("stats --by-step counts every step of a run by module") {
  Scratch scratch;
  make_run(scratch);
  Run run = shardwright({"stats", scratch / "run", "--by-step", "--json"});
  CHECK(run.code == 0);
  auto steps = parsed(run.out)["steps"];
  REQUIRE(steps.size() == 2);
  CHECK(steps[0]["step"] == "step_200");
  CHECK(steps[1]["step"] == "step_100");
  CHECK(steps[0]["change"] == 0.0);
  CHECK(steps[1]["change"].is_null());
  CHECK(steps[0]["norm"].get<double>() > 0);
  CHECK(steps[0]["modules"].size() > 1);
  std::uint64_t elements = 0;
  for (const auto& module : steps[0]["modules"])
    elements += module["elements"].get<std::uint64_t>();
  CHECK(elements == steps[0]["elements"].get<std::uint64_t>());
  Run text = shardwright({"stats", scratch / "run", "--by-step"});
  CHECK(text.code == 0);
  CHECK(contains(text.out, "step_100"));
  CHECK(contains(text.out, "step_200"));
}

TEST_CASE("stats --by-step of a run with a step that cannot be read whole exits 2") {
  Scratch scratch;
  make_run(scratch);
  std::filesystem::remove(scratch / "run" + "/step_200/__0_0.distcp");
  Run run = shardwright({"stats", scratch / "run", "--by-step", "--json"});
  CHECK(run.code == 2);
  auto steps = parsed(run.out)["steps"];
  REQUIRE(steps.size() == 2);
  CHECK(steps[0]["unread"].get<std::uint64_t>() > 0);
  CHECK(steps[1]["unread"] == 0);
}

TEST_CASE("stats --by-step refuses a single checkpoint and names of tensors") {
  Scratch scratch;
  make_run(scratch);
  CHECK(shardwright({"stats", kWhole, "--by-step"}).code == 3);
  CHECK(shardwright({"stats", scratch / "run", "model.*", "--by-step"}).code == 3);
  Run one = shardwright({"stats", scratch / "run"});
  CHECK(contains(one.err, "--by-step"));
}
