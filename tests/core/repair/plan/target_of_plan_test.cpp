// The target of a plan on its checkpoint: which items stay, and which are assembled from parts.
#include "core/repair/plan/target_of_plan.h"

#include <doctest/doctest.h>

#include "core/repair/lower/lower.h"
#include "core/repair/make_checkpoint.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

// "w" of [6, 4] in two row tiles (chunks 0 and 1), and "x" of [6, 4], half of which is saved (chunk
// 2).
std::shared_ptr<const Checkpoint> with_hole(const std::string& path) {
  MadeTensor w{"w", {6, 4}, {}}, x{"x", {6, 4}, {}};
  for (std::int64_t i = 0; i < 2; ++i)
    w.chunks.push_back(
        {{{3 * i, 0}, {3, 4}}, {3, 4}, Values(12, i), static_cast<std::uint32_t>(i)});
  x.chunks.push_back({{{0, 0}, {3, 4}}, {3, 4}, Values(12, 7), 0});
  write_checkpoint(path, {w, x});
  return opened(path);
}

// Exchanges the two tiles of "w".
Plan plan_to_exchange(const Checkpoint& checkpoint) {
  auto planned =
      lower(checkpoint, WrongBoxes{TensorId{0}, {6, 4}, {{{3, 0}, {3, 4}}, {{0, 0}, {3, 4}}}});
  REQUIRE(planned.has_value());
  Plan plan;
  plan.operations.push_back({OperationKind::kRelabel, "", {"w"}, "exchange"});
  plan.tensors.push_back(std::move(*planned));
  return plan;
}

Result<LoweredTarget> lowered(const std::shared_ptr<const Checkpoint>& checkpoint,
                              const Plan& plan) {
  SHW_TRY(TargetOfPlan target, target_of_plan(checkpoint, plan, nullptr));
  target.form.out = "out";
  return lower_target(target.all, target.form);
}

}  // namespace

TEST_CASE("target of a plan: a repair alone keeps items and asks nothing of other tensors") {
  TemporaryFolder folder;
  const auto checkpoint = with_hole(folder / "ckpt");
  auto made = lowered(checkpoint, plan_to_exchange(*checkpoint));
  if (!made) FAIL(made.error().message);
  CHECK(made->program.jobs.empty());
  CHECK(made->laid_out.made.empty());
  CHECK_FALSE(made->outputs.all_new);
  const OutputTiles& tiles = made->outputs.tensors[0].tiles;
  REQUIRE(tiles.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    REQUIRE(tiles[i].kept.has_value());
    CHECK(tiles[i].box.offsets[0] == (index_of(*tiles[i].kept) == 0 ? 3 : 0));
  }
  REQUIRE(made->outputs.tensors[1].tiles.size() == 1);
  CHECK(made->outputs.tensors[1].tiles[0].kept == ChunkId{2});
}

TEST_CASE("target of a plan: what is rewritten has to be whole") {
  TemporaryFolder folder;
  const auto checkpoint = with_hole(folder / "ckpt");
  Plan plan = plan_to_exchange(*checkpoint);
  plan.steps.push_back(CastStep{{"w"}, Dtype::kBfloat16});
  auto refused = lowered(checkpoint, plan);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().place.tensor == "x");
  plan.steps.insert(plan.steps.begin(), DropStep{{"x"}});
  auto made = lowered(checkpoint, plan);
  if (!made) FAIL(made.error().message);
  CHECK(made->outputs.all_new);
  CHECK(made->laid_out.made.size() == 2);
}
