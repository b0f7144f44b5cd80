// Comparing the open checkpoint with another one.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "core/session/session.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

std::string compared_case(const char* name) {
  return std::string(SHW_TEST_DATA) + "/torch-2.14/" + name;
}

}  // namespace

TEST_CASE("a session compares what is open with another checkpoint, and with itself") {
  Session session;
  std::string base = compared_case("s1_placement_not_transposed");
  session.apply(CompareCommand{base + "/ckpt"});
  session.wait();
  CHECK(session.snapshot()->error.has_value());  // nothing is open
  session.apply({OpenCommand{base + "/ckpt", base + "/spec.json"}, CheckCommand{}, PlanCommand{}});
  TemporaryFolder folder;
  session.apply({RepairCommand{{folder / "out", false}}, CompareCommand{folder / "out", true}});
  session.wait();
  auto now = session.snapshot();
  if (now->error) FAIL(now->error->message);
  REQUIRE(now->compared != nullptr);
  const CheckpointDifference& difference = now->compared->difference;
  CHECK(difference.verdict == EqualityVerdict::kDifferent);
  CHECK(difference.data);
  REQUIRE_FALSE(difference.tensors.empty());
  CHECK(difference.tensors.front().kind == DifferenceKind::kReshaped);
  CHECK(now->compared_with == folder / "out");
  CHECK_FALSE(now->difference.has_value());

  // Selecting a difference selects its tensor.
  session.apply(DifferenceCommand{0});
  session.wait();
  now = session.snapshot();
  REQUIRE(now->difference == 0u);
  REQUIRE(now->tensor.has_value());
  CHECK(now->checkpoint->fqn(*now->tensor) == difference.tensors.front().fqn);
  session.apply(DifferenceCommand{99});
  session.wait();
  CHECK(session.snapshot()->difference == 0u);

  session.apply(CompareCommand{base + "/ckpt", true});
  session.wait();
  CHECK(session.snapshot()->compared->difference.verdict == EqualityVerdict::kSame);
  CHECK(session.snapshot()->compared->difference.tensors.empty());
  session.apply(CompareCommand{"/no/such/checkpoint"});
  session.wait();
  CHECK(session.snapshot()->error.has_value());
  CHECK(session.snapshot()->compared != nullptr);  // the old one stays
}

TEST_CASE("a session compares checkpoints of two programs through their map") {
  const std::string pair = std::string(SHW_SOURCE_DIR) + "/tests/core/maps/data/llama3/";
  Session session;
  session.apply({OpenCommand{pair + "megatron"}, CompareCommand{pair + "hf", true}});
  session.wait();
  auto now = session.snapshot();
  if (now->error) FAIL(now->error->message);
  REQUIRE(now->compared != nullptr);
  CHECK(now->compared->difference.verdict == EqualityVerdict::kSame);
  CHECK(now->compared->difference.tensors.empty());
  REQUIRE(now->paired != nullptr);
  CHECK_FALSE(now->paired->rows.empty());

  // For two checkpoints of one program, results of the previous pair disappear.
  session.apply(CompareCommand{pair + "megatron", false});
  session.wait();
  CHECK(session.snapshot()->paired == nullptr);

  session.apply(LearnCommand{pair + "hf"});
  session.wait();
  now = session.snapshot();
  if (now->error) FAIL(now->error->message);
  REQUIRE(now->paired != nullptr);
  CHECK(now->paired->proved.has_value());
}

TEST_CASE("a run that is opened with a reference opens the step that it names") {
  const std::string pair = std::string(SHW_SOURCE_DIR) + "/tests/core/maps/data/llama3/";
  TemporaryFolder run;
  std::filesystem::copy(pair + "megatron", run / "iter_0000001");
  std::filesystem::copy(pair + "megatron", run / "iter_0000002");
  std::ofstream(run / "latest_checkpointed_iteration.txt") << "2";
  Session session;
  session.apply(OpenCommand{run.path()});
  session.wait();
  CHECK(session.snapshot()->checkpoint == nullptr);  // all steps
  session.apply({OpenCommand{run.path(), "", pair + "hf"}, CheckCommand{}});
  session.wait();
  auto now = session.snapshot();
  if (now->error) FAIL(now->error->message);
  REQUIRE(now->checkpoint != nullptr);
  CHECK(now->report != nullptr);
  CHECK(now->options.against == pair + "hf");
}
