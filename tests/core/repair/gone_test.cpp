// Results of a checkpoint with a missing or truncated file: its contents are dropped if a step says
// so, the certificate lists them as lost, and all else is kept.
#include <doctest/doctest.h>

#include "core/model/reachable.h"
#include "core/put_folder.h"
#include "core/transform/drawn_plan.h"
#include "core/transform/lower.h"

using namespace shw;
using namespace shw::test;

namespace {

// A random checkpoint with a missing or truncated file; returns that file's original bytes. The
// reference drops what the file contained.
std::pair<std::string, Bytes> draw_damaged(DrawnPlan& plan, Dice& dice) {
  plan.wanted = random_tensors(dice);
  save_in(plan.store, plan.wanted, dice);
  std::vector<std::string> files;
  for (std::string& name : plan.store.names("/ck")) {
    if (name.ends_with(".distcp")) files.push_back("/ck/" + name);
  }
  REQUIRE_FALSE(files.empty());
  const std::string& file =
      files[static_cast<std::size_t>(dice.pick(0, static_cast<std::int64_t>(files.size()) - 1))];
  const Bytes whole_file = *plan.store.get(file);
  if (dice.pick(0, 1) == 0) {
    auto folder = plan.store.edit_folder("/ck");
    REQUIRE(folder.has_value());
    REQUIRE((*folder)->remove(file.substr(4)));
  } else {
    Bytes bytes = whole_file;
    bytes.resize(
        static_cast<std::size_t>(dice.pick(0, static_cast<std::int64_t>(bytes.size()) - 1)));
    plan.store.put(file, std::move(bytes));
  }
  auto damaged = open_in(plan.store, "/ck");
  for (std::uint32_t c = 0; c < damaged->chunk_count(); ++c) {
    const ChunkId chunk{c};
    if (is_reachable(*damaged, chunk)) continue;
    const Box box{copy_of(damaged->offsets(chunk)), copy_of(damaged->sizes(chunk))};
    const std::string fqn(damaged->fqn(damaged->tensor_of(chunk)));
    PlainSteps{plan.wanted}(FillStep{{fqn}, {{box}}});
  }
  return {file, whole_file};
}

std::int64_t lost_in(const PlainCheckpoint& all) {
  std::int64_t lost = 0;
  for (const auto& [fqn, tensor] : all)
    lost += std::count(tensor.lost.begin(), tensor.lost.end(), true);
  return lost;
}

Result<RepairResult> made_of(DrawnPlan& plan, const TargetState& all) {
  return make_target(plan.store, all, run_into(plan, all, "/out"), nullptr);
}

}  // namespace

TEST_CASE("what was in a missing file is given up by a step, counted, and all else is kept") {
  int with_losses = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    DrawnPlan plan;
    const auto [file, whole_file] = draw_damaged(plan, dice);
    if (lost_in(plan.wanted) != 0) ++with_losses;
    plan.steps = {FillStep{{"*"}, {}, 0, "", "", true}};
    StepDrawer drawer(plan.wanted, dice, false);
    for (std::int64_t more = dice.pick(0, 3); more > 0; --more) {
      Step step = drawer.draw();
      if (std::holds_alternative<DequantiseStep>(step)) break;  // refused for filled elements
      plan.steps.push_back(std::move(step));
      std::visit(PlainSteps{plan.wanted}, plan.steps.back());
    }
    auto damaged = open_in(plan.store, "/ck");
    const bool is_settled = dice.pick(0, 1) == 0;
    if (is_settled) resolve_missing(*damaged, plan.steps);
    auto read_again = plan_from_json(told(plan.steps), "plan.json");
    REQUIRE(read_again.has_value());
    CHECK(plan_to_json(*read_again) == told(plan.steps));
    const TargetState all = taken(damaged, plan.steps);
    auto made = made_of(plan, all);
    if (!made) FAIL(made.error().message << "\n" << told(plan.steps));
    proved_files(plan, all, "/out");
    if (!is_settled) continue;
    // The result still matches its certificate when the file is back.
    plan.store.put(file, whole_file);
    proved_files(plan, target_state_of(open_in(plan.store, "/ck")), "/out");
  }
  CHECK(with_losses > 40);
}

TEST_CASE("a plan that needs what is gone is refused and says how to give it up") {
  for (unsigned seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    DrawnPlan plan;
    draw_damaged(plan, dice);
    auto damaged = open_in(plan.store, "/ck");
    std::size_t gone = 0;
    for (std::uint32_t c = 0; c < damaged->chunk_count(); ++c)
      gone += is_reachable(*damaged, ChunkId{c}) ? 0 : 1;
    Status all_there = check_all_reachable(*damaged);
    CHECK(all_there.has_value() == (gone == 0));
    if (gone > 1)
      CHECK(all_there.error().message.find(std::to_string(gone - 1) + " other item") !=
            std::string::npos);
    plan.steps = {ReshardStep{{"*"}, {{{"dp", 2}}}, {{Placement::Kind::kReplicate, 0, 1}}}};
    const TargetState all = taken(damaged, plan.steps);
    auto made = made_of(plan, all);
    if (lost_in(plan.wanted) == 0) continue;
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().kind == ErrorKind::kUnsupported);
    CHECK(made.error().message.find("cannot be carried over") != std::string::npos);
    CHECK(made.error().advice.find("\"gone\": true") != std::string::npos);
    CHECK_FALSE(plan.store.exists("/out"));
  }
}

TEST_CASE(
    "entries that are not tensors and are gone are left behind by the step that is proposed") {
  MemoryStore store;
  put_folder(store, SHW_TEST_DATA "/torch-2.14/healthy_fsdp/ckpt", "/ck");
  Bytes cut = *store.get("/ck/__1_0.distcp");
  cut.resize(2000);
  store.put("/ck/__1_0.distcp", std::move(cut));
  auto checkpoint = open_in(store, "/ck");
  ResultFormat form{&dcp_format(), 0, "/out"};
  std::vector<Step> steps = {FillStep{{"*"}, {}, 0, "", "", true}};
  auto refused = lower_target(taken(checkpoint, steps), form);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("cannot be carried over") != std::string::npos);
  const std::string& advice = refused.error().advice;
  auto begin = advice.find('{');
  REQUIRE(begin != std::string::npos);
  auto proposed = plan_from_json(
      R"({"schema": "shardwright/2", "steps": [)" + advice.substr(begin) + "]}", "advice");
  REQUIRE(proposed.has_value());
  REQUIRE(proposed->steps.size() == 1);
  const auto& drop = std::get<DropStep>(proposed->steps.front());
  CHECK(drop.tensors.size() > 1);
  for (const std::string& fqn : drop.tensors) CHECK_FALSE(checkpoint->find(fqn).has_value());
  steps.push_back(drop);
  CHECK(lower_target(taken(checkpoint, steps), form).has_value());
}
