#include "core/session/session.h"

#include <doctest/doctest.h>

#include "core/temporary_folder.h"

using namespace shw;

namespace {

std::string case_dir(const char* name) {
  return std::string(SHW_TEST_DATA) + "/torch-2.14/" + name;
}

}  // namespace

TEST_CASE("what was asked for after a failed opening never hides why it failed") {
  // The opening fails within microseconds; the check that was sent next once came before its error.
  for (int i = 0; i < 300; ++i) {
    Session session;
    session.apply({OpenCommand{"/no/such/checkpoint", ""}, CheckCommand{}, PlanCommand{}});
    session.wait();
    auto snapshot = session.snapshot();
    REQUIRE(snapshot->error.has_value());
    CHECK(snapshot->error->kind == ErrorKind::kIo);
    CHECK(snapshot->checkpoint == nullptr);
    CHECK(snapshot->report == nullptr);
  }
}

TEST_CASE("failure: it stays until the same command begins again, a cancel is none") {
  Session session;
  session.apply(OpenCommand{"/no/such/checkpoint"});
  session.wait();
  REQUIRE(session.snapshot()->failure != nullptr);
  CHECK(session.snapshot()->failure->verb == "open");
  session.apply(SavePlanCommand{"/no/such/folder/plan.json"});
  session.wait();
  CHECK(session.snapshot()->failure->verb == "plan-save");
  session.apply(OpenCommand{case_dir("s1_placement_not_transposed/ckpt")});
  session.wait();
  CHECK_FALSE(session.snapshot()->error.has_value());
  REQUIRE(session.snapshot()->failure != nullptr);
  CHECK(session.snapshot()->failure->verb == "plan-save");
  session.apply(SavePlanCommand{"/no/such/folder/plan.json"});
  session.apply(CancelCommand{});
  session.wait();
  session.apply(SelectTensorCommand{"no such tensor"});
  CHECK(session.snapshot()->failure->verb == "select");
}

TEST_CASE("a check with nothing open says so") {
  Session session;
  session.apply(CheckCommand{});
  session.wait();
  REQUIRE(session.snapshot()->error.has_value());
  CHECK(session.snapshot()->error->message == "nothing is open");
}

TEST_CASE("a session goes from opening to a proved repair and back to the list") {
  Session session;
  session.apply({OpenCommand{case_dir("s1_placement_not_transposed/ckpt"),
                             case_dir("s1_placement_not_transposed/spec.json")},
                 CheckCommand{}, PlanCommand{}});
  session.wait();
  auto planned = session.snapshot();
  REQUIRE_FALSE(planned->error.has_value());
  REQUIRE(planned->plan != nullptr);
  CHECK(planned->finding == 0u);
  CHECK(planned->tensor.has_value());

  TemporaryFolder folder;
  session.apply(
      {RepairCommand{{folder / "out", false}}, VerifyCommand{}, FilterCommand{"finding:*"}});
  session.wait();
  auto repaired = session.snapshot();
  REQUIRE_FALSE(repaired->error.has_value());
  REQUIRE(repaired->verified != nullptr);
  REQUIRE(repaired->order != nullptr);
  CHECK(repaired->order->size() < repaired->checkpoint->tensor_count());
  CHECK(repaired->revision > planned->revision);
}

TEST_CASE("check: the finding that is read stays selected") {
  Session session;
  session.apply({OpenCommand{case_dir("s2_swiglu_t1/ckpt"), case_dir("s2_swiglu_t1/spec.json")},
                 CheckCommand{}});
  session.wait();
  const auto first = session.snapshot();
  REQUIRE(first->report != nullptr);
  REQUIRE_FALSE(first->report->findings.empty());
  const std::size_t last = first->report->findings.size() - 1;
  const Finding& read = first->report->findings[last];
  session.apply(SelectFindingCommand{last});
  for (const auto depth : {std::optional<Depth>(), std::optional(Depth::kData)}) {
    session.apply(CheckCommand{depth});
    session.wait();
    const auto now = session.snapshot();
    CHECK(now->report != first->report);
    REQUIRE(now->finding.has_value());
    CHECK(now->report->findings[*now->finding].rule == read.rule);
    CHECK(now->report->findings[*now->finding].subjects.front() == read.subjects.front());
  }
}

TEST_CASE("a cancel takes back what waits") {
  Session session;
  session.apply({OpenCommand{case_dir("s1_placement_not_transposed/ckpt"), ""}, CheckCommand{},
                 CancelCommand{}});
  session.wait();
  CHECK(session.snapshot()->checkpoint == nullptr);
  CHECK_FALSE(session.snapshot()->error.has_value());
}

TEST_CASE("a check keeps the finding that is being read, unless a worse one was found") {
  Session session;
  session.apply({OpenCommand{case_dir("s4_expert_axis_dropped/ckpt"),
                             case_dir("s4_expert_axis_dropped/spec.json")},
                 CheckCommand{}});
  session.wait();
  const std::size_t last = session.snapshot()->report->findings.size() - 1;
  REQUIRE(last > 0);
  const std::string rule = session.snapshot()->report->findings[last].rule;
  session.apply(SelectFindingCommand{last});
  session.apply(CheckCommand{Depth::kData});
  session.wait();
  const auto after = session.snapshot();
  REQUIRE(after->finding.has_value());
  CHECK(after->report->findings[*after->finding].rule == rule);
}

TEST_CASE("a job that fails takes back what was asked for with it, and nothing else") {
  Session session;
  session.apply(OpenCommand{case_dir("s1_placement_not_transposed/ckpt"), ""});
  session.wait();
  session.apply({RepairCommand{}, PlanCommand{}});  // there is no plan yet
  session.apply(CheckCommand{});
  session.wait();
  CHECK(session.snapshot()->plan == nullptr);
  CHECK(session.snapshot()->report != nullptr);
}

TEST_CASE("after a failed opening the next one and its check are run") {
  Session session;
  session.apply({OpenCommand{"/no/such/checkpoint", ""}, CheckCommand{}});
  session.apply({OpenCommand{case_dir("s1_placement_not_transposed/ckpt"), ""}, CheckCommand{}});
  session.wait();
  CHECK_FALSE(session.snapshot()->error.has_value());
  CHECK(session.snapshot()->checkpoint != nullptr);
  CHECK(session.snapshot()->report != nullptr);
}

TEST_CASE("what lost elements are filled with is the person's choice, and a bad one says so") {
  Session session;
  session.apply({OpenCommand{case_dir("s2_swiglu_t2/ckpt"), case_dir("s2_swiglu_t2/spec.json")},
                 CheckCommand{}, PlanCommand{"zero"}});
  session.wait();
  REQUIRE(session.snapshot()->plan != nullptr);
  CHECK(session.snapshot()->options.fill == "zero");

  session.apply(PlanCommand{"from:/no/such/checkpoint"});
  session.wait();
  CHECK(session.snapshot()->error.has_value());
  CHECK(session.snapshot()->options.fill == "zero");  // the current plan is still the old one

  session.apply(PlanCommand{"from:" + case_dir("s2_swiglu_t2/ckpt")});
  session.wait();
  CHECK_FALSE(session.snapshot()->error.has_value());
  CHECK(session.snapshot()->options.fill == "from:" + case_dir("s2_swiglu_t2/ckpt"));
}
