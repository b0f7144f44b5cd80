// What is open, held against another checkpoint.
#include <doctest/doctest.h>

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
  CHECK(difference.verdict == Sameness::kDifferent);
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
  CHECK(session.snapshot()->compared->difference.verdict == Sameness::kSame);
  CHECK(session.snapshot()->compared->difference.tensors.empty());
  session.apply(CompareCommand{"/no/such/checkpoint"});
  session.wait();
  CHECK(session.snapshot()->error.has_value());
  CHECK(session.snapshot()->compared != nullptr);  // the old one stays
}
