// Runs whose newest step has a trainer's files and no model.
#include <doctest/doctest.h>

#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/memory_sink.h"

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
