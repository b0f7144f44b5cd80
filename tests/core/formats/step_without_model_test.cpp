// Runs whose newest step has a trainer's files and no model.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/memory_sink.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

namespace {

using Files = std::vector<std::pair<std::string, Bytes>>;

Bytes step_weight() {
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  return to_bytes(little(header.size(), 8) + header + std::string(4, '\1'));
}

Finding step_finding(Files files) {
  auto opened = open_checkpoint(memory_directory("run", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  REQUIRE((*opened)->opening_findings().size() == 1);
  return (*opened)->opening_findings()[0];
}

}  // namespace

TEST_CASE("step without model: a later step that has only a trainer's files is warned of") {
  const Bytes text = to_bytes("{}");
  Files files = {{"checkpoint-2/model.safetensors", step_weight()},
                 {"checkpoint-2/optimizer.pt", text},
                 {"checkpoint-10/optimizer.pt", text},
                 {"checkpoint-10/trainer_state.json", text}};
  const Finding warned = step_finding(files);
  CHECK(warned.severity == Severity::kWarning);
  CHECK(warned.cause.find("checkpoint-10 is later") != std::string::npos);
  CHECK(warned.cause.find("Opened checkpoint-2") != std::string::npos);
  // An earlier step without a model, or folders of another name, are not of interest.
  files[2].first = "checkpoint-1/optimizer.pt";
  files[3].first = "evaluation-11/scheduler.pt";
  CHECK(step_finding(files).severity == Severity::kInfo);
}

TEST_CASE("step without model: a later step without a file is warned of") {
  TemporaryFolder folder;
  const std::string run = folder / "run";
  const Bytes bytes = step_weight();
  for (const char* step : {"step_2", "step_10"}) {
    std::filesystem::create_directories(run + "/" + step);
    std::ofstream(run + "/" + step + "/model.safetensors", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  std::filesystem::create_directories(run + "/step_1");
  auto finding = [&] {
    auto opened = open_checkpoint(run);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    REQUIRE((*opened)->opening_findings().size() == 1);
    return (*opened)->opening_findings()[0];
  };
  CHECK(finding().severity == Severity::kInfo);
  std::filesystem::create_directories(run + "/step_12");
  CHECK(finding().severity == Severity::kWarning);
  CHECK(finding().cause.find("step_12 is later") != std::string::npos);
}

TEST_CASE("step without model: an empty tracker is warned of, a missing one is information") {
  Files files = {{"iter_0000002/model.safetensors", step_weight()},
                 {"latest_checkpointed_iteration.txt", {}}};
  const Finding warned = step_finding(files);
  CHECK(warned.severity == Severity::kWarning);
  CHECK(warned.cause.find("latest_checkpointed_iteration.txt is empty") != std::string::npos);
  files.pop_back();
  const Finding told = step_finding(files);
  CHECK(told.severity == Severity::kInfo);
  CHECK(told.cause.find("starts from random weights") != std::string::npos);
  files[0].first = "step_2/model.safetensors";
  CHECK(step_finding(files).cause.find("random") == std::string::npos);
}

TEST_CASE(
    "unfinished step: the newest step without the file that Trainer writes last is warned of") {
  const Bytes text = to_bytes("{}");
  Files files = {{"checkpoint-2/model.safetensors", step_weight()},
                 {"checkpoint-2/trainer_state.json", text},
                 {"checkpoint-10/model.safetensors", step_weight()},
                 {"checkpoint-10/training_args.bin", text}};
  const auto unfinished = [](Files of) -> std::optional<Finding> {
    auto opened = open_checkpoint(memory_directory("run", std::move(of)));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    for (const Finding& finding : (*opened)->opening_findings()) {
      if (finding.rule == "side-file") return finding;
    }
    return std::nullopt;
  };
  const auto warned = unfinished(files);
  REQUIRE(warned.has_value());
  CHECK(warned->severity == Severity::kWarning);
  CHECK(warned->subjects == std::vector<std::string>{"checkpoint-10/trainer_state.json"});
  CHECK(warned->cause.find("Resume from checkpoint-2") != std::string::npos);
  // A finished step, a run of which no step has the file, and an older step without it are fine.
  Files finished = files;
  finished.push_back({"checkpoint-10/trainer_state.json", text});
  CHECK_FALSE(unfinished(finished).has_value());
  finished.erase(finished.begin() + 1);
  CHECK_FALSE(unfinished(finished).has_value());
  files.erase(files.begin() + 1);
  CHECK_FALSE(unfinished(files).has_value());
}
