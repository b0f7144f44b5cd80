// RUN/@latest and RUN/@latest-complete in place of a checkpoint.
#include <doctest/doctest.h>

#include <filesystem>

#include "app/answer.h"
#include "app/process.h"

using namespace shw::test;
namespace fs = std::filesystem;

namespace {

const std::string kTorch = std::string(SHW_TEST_DATA) + "/torch-2.14/";

// Steps 900 and 1000; the save of step 1000 did not finish.
struct TrainingRun {
  TrainingRun() {
    fs::create_directory(run);
    for (const char* step : {"/step_900", "/step_1000"})
      fs::copy(kTorch + "s1_placement_not_transposed/ckpt", run + step);
    fs::remove(run + "/step_1000/.metadata");
  }
  Scratch scratch;
  std::string run = scratch / "run";
};

}  // namespace

TEST_CASE("the newest complete step is taken, and stderr says which and why no newer one") {
  const TrainingRun training;
  const std::string word = training.run + "/@latest-complete";
  const Run info = shardwright({"info", word});
  CHECK(info.code == 0);
  CHECK(contains(info.err, word + " is " + training.run + "/step_900;"));
  CHECK(contains(info.err, "step_1000: "));
  CHECK_FALSE(contains(info.out, "@latest"));
  CHECK(shardwright({"info", word, "--quiet"}).err.empty());
  auto named = parsed(shardwright({"info", training.run + "/step_900", "--json"}).out);
  auto newest = parsed(shardwright({"info", word, "--json"}).out);
  CHECK(newest["path"].get<std::string>().ends_with("/step_900"));
  named.erase("seconds");
  newest.erase("seconds");
  CHECK(newest == named);
  CHECK(shardwright({"diff", word, training.run + "/step_900", "--data"}).code == 0);
}

TEST_CASE("the newest step is opened though its save did not finish, and refused for that") {
  const TrainingRun training;
  const Run info = shardwright({"info", training.run + "/@latest", "--json"});
  CHECK(info.code == 2);
  CHECK(contains(info.err, " is " + training.run + "/step_1000"));
  CHECK(parsed(info.out)["error"]["file"] == ".metadata");
}

TEST_CASE("a repair of the newest step is next to that step") {
  const TrainingRun training;
  const Run repair = shardwright({"repair", training.run + "/@latest-complete", "--spec",
                                  kTorch + "s1_placement_not_transposed/spec.json", "--yes"});
  CHECK(repair.code == 0);
  CHECK(fs::exists(training.run + "/step_900-repaired/certificate.json"));
  // A repaired copy is not a step that training saved.
  CHECK(contains(shardwright({"info", training.run + "/@latest-complete"}).err,
                 "is " + training.run + "/step_900;"));
}

TEST_CASE("what holds no step is named by the folder that was typed") {
  const Scratch scratch;
  const Run run = shardwright({"check", scratch / "none/@latest", "--json"});
  CHECK(run.code == 4);
  CHECK(parsed(run.out)["error"]["file"] == scratch / "none");
  fs::create_directories(scratch / "empty/logs");
  const Run empty = shardwright({"check", scratch / "empty/@latest-complete", "--json"});
  CHECK(empty.code == 2);
  CHECK(contains(parsed(empty.out)["error"]["message"], "no step"));
}

TEST_CASE("a step compared with itself is not a witness, under whatever name it is given") {
  const TrainingRun training;
  const std::string step = training.run + "/step_900";
  const auto alone = parsed(shardwright({"check", step, "--json", "--data"}).out);
  fs::create_directory_symlink("step_900", training.run + "/best");
  for (const char* same : {"/step_900", "/best", "/@latest-complete", "/step_900/.metadata"}) {
    const Run run =
        shardwright({"check", step, "--json", "--data", "--against", training.run + same});
    auto answer = parsed(run.out);
    CHECK(answer["verdict"] == alone["verdict"]);
    CHECK(answer["findings"] == alone["findings"]);
    // The same questions are open as without a reference, and one more: that it was not used.
    REQUIRE(answer["unjudged"].size() == alone["unjudged"].size() + 1);
    CHECK(contains(answer["unjudged"].back()["what"], "names this one"));
  }
  // Two files of one folder, or a file and its copy, are different checkpoints.
  const std::string truth = kTorch + "s1_placement_not_transposed/truth.safetensors";
  for (const char* name : {"/one.safetensors", "/two.safetensors"})
    fs::copy(truth, training.run + name);
  CHECK(shardwright({"check", training.run + "/one.safetensors", "--against",
                     training.run + "/two.safetensors"})
            .code == 0);
}
