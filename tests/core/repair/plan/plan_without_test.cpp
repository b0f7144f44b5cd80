// Turns off steps of a plan.
#include "core/repair/plan/plan_without.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/open.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"
#include "core/verbs/verbs.h"

using namespace shw;

namespace {

struct PlannedFixture {
  verbs::Opened opened;
  CheckReport report;
  Plan plan;
};

PlannedFixture planned_fixture(const std::string& fixture) {
  VerbOptions options;
  options.checkpoint = std::string(SHW_TEST_DATA) + "/torch-2.14/" + fixture + "/ckpt";
  options.spec = std::string(SHW_TEST_DATA) + "/torch-2.14/" + fixture + "/spec.json";
  auto opened = verbs::open(options);
  REQUIRE(opened.has_value());
  auto report = verbs::check(*opened, std::nullopt);
  REQUIRE(report.has_value());
  auto plan = verbs::plan(*opened, *report, "");
  REQUIRE(plan.has_value());
  return {*opened, std::move(*report), std::move(*plan)};
}

DisabledSteps all_but(const Plan& plan, std::size_t on) {
  DisabledSteps off(plan.operations.size(), true);
  off[on] = false;
  return off;
}

bool says_off(const Finding& finding) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(), [](const auto& one) {
    const auto* text = std::get_if<std::string>(&one.second);
    return one.first == "not_repaired_because" && text != nullptr &&
           text->find("switched off") != std::string::npos;
  });
}

const char* const kFirstLost = "optimizer.state.0.exp_avg";

// Two tensors with lost rows, and two findings.
struct TwoLost {
  TemporaryFolder folder;
  std::shared_ptr<const Checkpoint> checkpoint;
  CheckReport report;
  Plan plan;
  TwoLost() {
    auto rows = [](const char* fqn) {
      return MadeTensor{fqn, {2, 3}, {{whole(Extents{2, 3}), {2, 3}, {1, 2, 3, 4, 5, 6}, 1}}};
    };
    write_checkpoint(folder / "bad", {rows(kFirstLost), rows("b")});
    checkpoint = opened(folder / "bad");
    for (const char* fqn : {kFirstLost, "b"}) {
      TensorId tensor = *checkpoint->find(fqn);
      Finding finding;
      finding.rule = "local-saved-as-global";
      finding.subjects = {fqn};
      finding.cause = "Only some rows were saved.";
      finding.diagnoses = {PartlyLost{
          tensor, {6, 3}, {{checkpoint->chunks(tensor)[0], Box{{0, 0}, {2, 3}}, {2, 0}}}, ""}};
      report.findings.push_back(finding);
    }
    auto made = make_plan(*checkpoint, report, {});
    REQUIRE(made.has_value());
    plan = std::move(*made);
  }
};

}  // namespace

TEST_CASE("steps that change the same tensors go on and off together") {
  TwoLost two;
  REQUIRE(two.plan.operations.size() >= 4);
  auto together = inseparable_steps(two.plan);
  for (std::size_t i = 0; i < together.size(); ++i) {
    for (std::size_t j = 0; j < together.size(); ++j) {
      const auto &a = two.plan.operations[i].subjects, &b = two.plan.operations[j].subjects;
      bool share = std::any_of(a.begin(), a.end(), [&](const std::string& fqn) {
        return std::find(b.begin(), b.end(), fqn) != b.end();
      });
      CHECK((together[i] == together[j]) == share);
    }
  }
  auto off = switch_step(two.plan, {}, 0, false);
  REQUIRE(off.has_value());
  for (std::size_t i = 0; i < off->size(); ++i) CHECK((*off)[i] == (together[i] == together[0]));
  auto back = switch_step(two.plan, *off, 1, true);
  REQUIRE(back.has_value());
  CHECK(std::find(back->begin(), back->end(), true) == back->end());
  CHECK_FALSE(switch_step(two.plan, {}, 99, false).has_value());
}

TEST_CASE("without a step its tensors stay as they are saved, and that is said") {
  TwoLost two;
  auto off = switch_step(two.plan, {}, 0, false);
  REQUIRE(off.has_value());
  auto less = plan_without_steps(*two.checkpoint, &two.report, two.plan, *off);
  REQUIRE(less.has_value());
  REQUIRE(less->tensors.size() == 1);
  CHECK(two.checkpoint->fqn(less->tensors[0].tensor) == "b");
  REQUIRE(less->undecided.size() == 1);
  CHECK(less->undecided[0].subjects == std::vector<std::string>{kFirstLost});
  CHECK(less->undecided[0].cause == "Only some rows were saved.");
  CHECK(says_off(less->undecided[0]));
  CHECK(plan_hash(*two.checkpoint, *less) != plan_hash(*two.checkpoint, two.plan));

  // The reduced plan repairs only the other tensor.
  auto result = apply_plan(*two.checkpoint, *less, {two.folder / "out", false});
  REQUIRE(result.has_value());
  auto after = opened(two.folder / "out");
  CHECK(copy_of(after->shape(*after->find(kFirstLost))) == Extents{2, 3});
  CHECK(copy_of(after->shape(*after->find("b"))) == Extents{6, 3});
}

TEST_CASE("a plan without a step reads back from its own text as the same plan") {
  for (const char* fixture : {"s2_swiglu_t2", "s1_placement_not_transposed"}) {
    CAPTURE(fixture);
    PlannedFixture made = planned_fixture(fixture);
    const Checkpoint& checkpoint = *made.opened.checkpoint;
    for (std::size_t i = 0; i < made.plan.operations.size(); ++i) {
      auto off = switch_step(made.plan, {}, i, false);
      if (!off) continue;  // steps of every repair cannot be turned off
      auto less = plan_without_steps(checkpoint, &made.report, made.plan, *off);
      REQUIRE(less.has_value());
      std::string text = plan_to_json(checkpoint, *less);
      auto read = plan_from_json(checkpoint, text, "plan.json");
      REQUIRE(read.has_value());
      CHECK(plan_to_json(checkpoint, *read) == text);
      CHECK(read->undecided.size() == less->undecided.size());
      CHECK(text.find(plan_hash(checkpoint, *less)) != std::string::npos);
      CHECK(std::any_of(less->undecided.begin(), less->undecided.end(), says_off));
    }
  }
}

TEST_CASE("where nobody knows what a plan was made of, a step that is off tells its own words") {
  TwoLost two;
  auto off = switch_step(two.plan, {}, 0, false);
  auto less = plan_without_steps(*two.checkpoint, nullptr, two.plan, *off);
  REQUIRE(less.has_value());
  REQUIRE(less->undecided.size() == 1);
  CHECK(less->undecided[0].rule == "local-saved-as-global");
  CHECK(less->undecided[0].cause.find(two.plan.operations[0].text) != std::string::npos);
  auto none = plan_without_steps(*two.checkpoint, nullptr, two.plan,
                                 DisabledSteps(two.plan.operations.size(), true));
  REQUIRE(none.has_value());
  CHECK(none->empty());
  CHECK(none->tensors.empty());
  CHECK(none->undecided.size() == 2);
}

TEST_CASE("a step off and on again is the plan that it was") {
  TwoLost two;
  auto off = switch_step(two.plan, {}, 0, false);
  auto on = switch_step(two.plan, *off, 0, true);
  auto again = plan_without_steps(*two.checkpoint, &two.report, two.plan, *on);
  REQUIRE(again.has_value());
  CHECK(plan_to_json(*two.checkpoint, *again) == plan_to_json(*two.checkpoint, two.plan));
  CHECK_FALSE(plan_without_steps(*two.checkpoint, nullptr, two.plan, {true}).has_value());
}

TEST_CASE("what every repair writes again is off only when everything else is") {
  TwoLost two;
  Operation rewrite;
  rewrite.kind = OperationKind::kRewriteMetadata;
  rewrite.text = "rewrite .metadata";
  two.plan.operations.push_back(rewrite);
  std::size_t last = two.plan.operations.size() - 1;
  auto refused = switch_step(two.plan, {}, last, false);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kUsage);
  CHECK(switch_step(two.plan, all_but(two.plan, last), last, false).has_value());
  // The rewrite of the metadata is switched on with any other step.
  auto on = switch_step(two.plan, DisabledSteps(last + 1, true), 0, true);
  REQUIRE(on.has_value());
  CHECK_FALSE((*on)[last]);
  // Alone this step would not write anything useful.
  auto nothing = plan_without_steps(*two.checkpoint, nullptr, two.plan, all_but(two.plan, last));
  REQUIRE(nothing.has_value());
  CHECK(nothing->empty());
}

TEST_CASE("a name can be given without the tiles that go with it, and tiles without the name") {
  TwoLost two;
  Operation rename;
  rename.kind = OperationKind::kRename;
  rename.rule = "layers-renumbered";
  rename.subjects = {"b"};
  rename.text = "rename 1 tensor: b -> c";
  for (PlannedTensor& planned : two.plan.tensors) {
    if (two.checkpoint->fqn(planned.tensor) == "b") planned.fqn = "c";
  }
  two.plan.operations.push_back(rename);
  std::size_t last = two.plan.operations.size() - 1;
  auto no_name = switch_step(two.plan, {}, last, false);
  REQUIRE(no_name.has_value());
  CHECK(std::count(no_name->begin(), no_name->end(), true) == 1);
  auto tiles = plan_without_steps(*two.checkpoint, nullptr, two.plan, *no_name);
  REQUIRE(tiles.has_value());
  CHECK(tiles->tensors.size() == 2);
  for (const PlannedTensor& planned : tiles->tensors) CHECK(planned.fqn.empty());

  auto name = plan_without_steps(*two.checkpoint, nullptr, two.plan, all_but(two.plan, last));
  REQUIRE(name.has_value());
  REQUIRE(name->tensors.size() == 1);
  CHECK(name->tensors[0].fqn == "c");
  CHECK(same(name->tensors[0].shape, Extents{2, 3}));
  CHECK(name->lossless);
}
