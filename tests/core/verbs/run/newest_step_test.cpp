#include "core/verbs/run/newest_step.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "core/cluster/loopback.h"
#include "core/cluster/transport_team.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::verbs;
namespace fs = std::filesystem;

namespace {

const std::string kStep = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/ckpt";

// A run of torch's steps 200, 9000 and 10000.
struct Run {
  Run() {
    for (const char* step : {"step_10000", "step_9000", "step_200"}) fs::copy(kStep, folder / step);
  }
  std::string newest(const std::string& words) {
    auto step = newest_step(folder / words);
    REQUIRE_MESSAGE(step.has_value(), step.error().message);
    passed_over = step->passed_over;
    CHECK(step->path.starts_with(folder.path() + "/"));
    return step->path.substr(folder.path().size() + 1);
  }
  Error refused(const std::string& words) {
    auto step = newest_step(folder / words);
    REQUIRE_FALSE(step.has_value());
    return step.error();
  }
  std::string data_file(const std::string& step) {
    for (const auto& entry : fs::directory_iterator(folder / step)) {
      if (entry.path().extension() == ".distcp" && entry.file_size() != 0)
        return entry.path().string();
    }
    FAIL("no data file");
    return {};
  }
  TemporaryFolder folder;
  std::vector<std::string> passed_over;
};

}  // namespace

TEST_CASE("the newest step is the one of the greatest number, whatever became of it") {
  Run run;
  CHECK(run.newest("@latest") == "step_10000");
  CHECK(run.newest("@latest-complete") == "step_10000");
  CHECK(run.passed_over.empty());
  fs::remove(run.folder / "step_10000/.metadata");
  CHECK(run.newest("@latest") == "step_10000");
  fs::create_directory(run.folder / "step_10001");
  CHECK(run.newest("@latest/") == "step_10001");
}

TEST_CASE("a step whose save did not finish, or that has lost bytes, is not complete") {
  Run run;
  fs::remove(run.folder / "step_10000/.metadata");
  CHECK(run.newest("@latest-complete") == "step_9000");
  REQUIRE(run.passed_over.size() == 1);
  CHECK(run.passed_over[0].starts_with("step_10000: "));
  SUBCASE("a file is gone") {
    fs::remove(run.data_file("step_9000"));
    CHECK(run.newest("@latest-complete") == "step_200");
    CHECK(run.passed_over[1] == "step_9000: files are gone");
  }
  SUBCASE("a file is cut off") {
    const std::string file = run.data_file("step_9000");
    fs::resize_file(file, fs::file_size(file) / 2);
    CHECK(run.newest("@latest-complete") == "step_200");
    CHECK(run.passed_over[1] == "step_9000: files are cut off");
  }
  SUBCASE("the index is cut off") {
    fs::resize_file(run.folder / "step_9000/.metadata", 100);
    CHECK(run.newest("@latest-complete") == "step_200");
    CHECK(run.passed_over.size() == 2);
  }
  SUBCASE("none is left") {
    fs::remove(run.data_file("step_9000"));
    fs::remove(run.data_file("step_200"));
    const Error error = run.refused("@latest-complete");
    CHECK(error.kind == ErrorKind::kUnsupported);
    CHECK(error.message.find("no complete step") != std::string::npos);
    CHECK(error.message.find("step_200: files are gone") != std::string::npos);
  }
}

TEST_CASE("a step whose tiles are placed wrong is complete: what is wrong is for check to say") {
  Run run;
  fs::copy(std::string(SHW_TEST_DATA) + "/torch-2.14/s1_placement_not_transposed/ckpt",
           run.folder / "step_20000");
  CHECK(run.newest("@latest-complete") == "step_20000");
}

TEST_CASE("a team is recognised by its first member why there is no step") {
  TemporaryFolder folder;
  const auto ended = run_on_threads(2, {}, [&](Transport& transport) -> Status {
    TransportTeam team(transport, std::chrono::seconds(60), "here");
    VerbOptions options;
    options.checkpoint = folder / "@latest";
    SHW_TRY(auto settled, resolve_newest_steps(options, nullptr, &team));
    return {};
  });
  for (const Status& end : ended) {
    REQUIRE_FALSE(end.has_value());
    CHECK(end.error().message.find("no step") != std::string::npos);
  }
}

TEST_CASE("folders that are not steps do not count, and steps of two names are not compared") {
  Run run;
  fs::create_directories(run.folder / "logs_20000");
  fs::create_directories(run.folder / ".step_30000");
  fs::copy(kStep, run.folder / "step_9000-repaired");
  fs::copy(kStep, run.folder / "best");
  CHECK(run.newest("@latest") == "step_10000");
  fs::copy(kStep, run.folder / "epoch_3");
  const Error error = run.refused("@latest");
  CHECK(error.message.find("epoch_3") != std::string::npos);
  CHECK(error.message.find("step_10000") != std::string::npos);
}

TEST_CASE("numbers inside of names are compared as numbers, of files too") {
  TemporaryFolder folder;
  const std::string file =
      std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/truth.safetensors";
  for (const char* name : {"epoch=9-step=900.safetensors", "epoch=10-step=1000.safetensors"})
    fs::copy(file, folder / name);
  auto step = newest_step(folder / "@latest-complete");
  REQUIRE(step.has_value());
  CHECK(step->path == folder / "epoch=10-step=1000.safetensors");
}

TEST_CASE("what is below each step is named behind the word") {
  TemporaryFolder folder;
  for (const char* step : {"step_1", "step_2"}) {
    fs::create_directories(folder / step);
    fs::copy(kStep, folder / step + "/model");
    fs::copy(kStep, folder / step + "/optim");
  }
  fs::remove(folder / "step_2/model/.metadata");
  auto latest = [&](const std::string& words) {
    auto step = newest_step(folder / words);
    return step ? step->path : step.error().message;
  };
  CHECK(latest("@latest") == folder / "step_2");
  CHECK(latest("@latest/model") == folder / "step_2/model");
  CHECK(latest("@latest-complete/model") == folder / "step_1/model");
  CHECK(latest("@latest-complete/optim/") == folder / "step_2/optim");
}

TEST_CASE("a folder that is called so itself is meant itself") {
  Run run;
  fs::copy(kStep, run.folder / "@latest");
  CHECK_FALSE(is_step_alias(run.folder / "@latest"));
  CHECK(run.newest("@latest") == "@latest");
  CHECK(is_step_alias(run.folder / "@latest-complete"));
  CHECK_FALSE(is_step_alias(run.folder / "x@latest"));
  CHECK_FALSE(is_step_alias(""));
}

TEST_CASE("a run without steps, and one that is not there, are told so") {
  TemporaryFolder folder;
  auto none = newest_step(folder / "@latest");
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().message.find("no step") != std::string::npos);
  fs::create_directory(folder / "step_1");
  auto empty = newest_step(folder / "@latest");
  REQUIRE_FALSE(empty.has_value());
  CHECK(empty.error().message.find("step_1") != std::string::npos);
  auto gone = newest_step(folder / "gone/@latest");
  REQUIRE_FALSE(gone.has_value());
  CHECK(gone.error().kind == ErrorKind::kIo);
}

TEST_CASE("every path that was said is settled, and a team takes the first one's answer") {
  Run run;
  const std::string newest = run.folder / "step_10000", word = run.folder / "@latest";
  VerbOptions options;
  options.checkpoint = word;
  options.against = run.folder / "step_200";
  options.fill = "from:" + word;
  SUBCASE("alone") {
    auto settled = resolve_newest_steps(options, nullptr);
    REQUIRE(settled.has_value());
    REQUIRE(settled->size() == 2);
    CHECK(in_words(settled->front()) == word + " is " + newest);
  }
  SUBCASE("in a team of three") {
    std::vector<VerbOptions> own(3, options);
    const auto ended = run_on_threads(3, {}, [&](Transport& transport) -> Status {
      TransportTeam team(transport, std::chrono::seconds(60), "here");
      SHW_TRY(auto settled, resolve_newest_steps(own[team.rank()], nullptr, &team));
      return settled.size() == 2 ? Status{} : fail(ErrorKind::kUsage, "settled others");
    });
    for (const Status& end : ended) CHECK(end.has_value());
    for (const VerbOptions& member : own) {
      CHECK(member.checkpoint == newest);
      CHECK(member.fill == options.fill.substr(0, 5) + newest);
    }
    options = own.back();
  }
  CHECK(options.checkpoint == newest);
  CHECK(options.against == run.folder / "step_200");
  CHECK(options.fill == "from:" + newest);
}

TEST_CASE("newest step: what repairs made next to the steps is none of them") {
  Run run;
  for (const char* result : {"step_10000-repaired", "step_10000-repaired-2"}) {
    fs::copy(kStep, run.folder / result);
    std::ofstream(run.folder / result + "/certificate.json") << "{}";
  }
  CHECK(run.newest("@latest") == "step_10000");
  CHECK(run.newest("@latest-complete") == "step_10000");
}

TEST_CASE("resolved path: every part of a computed checkpoint is resolved, and URLs stay whole") {
  Run run;
  const std::string step = run.folder / "step_200", crooked = run.folder / "step_10000/../step_200";
  CHECK(resolved_path(crooked) == step);
  CHECK(resolved_path(crooked + "/@average=http://host/a," + crooked) ==
        step + "/@average=http://host/a," + step);
  CHECK(resolved_path("http://host/a/@quantised:fp8") == "http://host/a/@quantised:fp8");
}
