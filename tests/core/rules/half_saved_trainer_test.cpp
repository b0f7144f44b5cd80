// Folders of transformers' Trainer that lack a file which a resumed run reads.
#include "core/rules/half_saved_trainer.h"

#include <doctest/doctest.h>

#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/memory_sink.h"

using namespace shw;
using namespace shw::test;

namespace {

std::optional<Finding> half_saved(const std::vector<std::string>& names) {
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::vector<std::pair<std::string, Bytes>> files = {
      {"model.safetensors", to_bytes(little(header.size(), 8) + header + std::string(4, '\1'))}};
  for (const std::string& name : names) files.push_back({name, to_bytes("{}")});
  auto opened = open_checkpoint(memory_directory("step", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return half_saved_trainer_finding(**opened);
}

}  // namespace

TEST_CASE(
    "half-saved trainer: arguments and an optimizer without the trainer's state are warned of") {
  const auto cut = half_saved({"training_args.bin", "optimizer.pt", "rng_state.pth"});
  REQUIRE(cut.has_value());
  CHECK(cut->severity == Severity::kWarning);
  CHECK(cut->subjects == std::vector<std::string>{"trainer_state.json"});
  // Without Trainer's random states another program may have written the files.
  for (const char* beside : {"scheduler.pt", "training_args.bin"}) {
    const auto other = half_saved({"optimizer.pt", beside});
    REQUIRE(other.has_value());
    CHECK(other->severity == Severity::kInfo);
  }
  CHECK_FALSE(half_saved({"optimizer.pt"}).has_value());
}

TEST_CASE("half-saved trainer: finished steps and published weights are fine") {
  CHECK_FALSE(
      half_saved({"training_args.bin", "optimizer.pt", "scheduler.pt", "trainer_state.json"})
          .has_value());
  // save_only_model writes the state and no optimizer; save_model at the end writes neither.
  CHECK_FALSE(half_saved({"training_args.bin", "trainer_state.json"}).has_value());
  CHECK_FALSE(half_saved({"training_args.bin"}).has_value());
}
