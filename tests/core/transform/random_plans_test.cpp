// Random plans on random checkpoints: the engine's result equals that of loops over elements, for
// any chain of steps and any size of slab. SHARDWRIGHT_PLANS sets the number of plans.
#include <tbb/task_arena.h>

#include <cstdlib>

#include "core/exec/write_blocks.h"
#include "core/formats/items/items.h"
#include "core/memory_sink.h"
#include "core/repair/plan/plan.h"
#include "core/transform/drawn_plan.h"
#include "core/transform/lower.h"

using namespace shw;
using namespace shw::test;

namespace {

int plans_asked_for(int usual) {
  const char* asked = std::getenv("SHARDWRIGHT_PLANS");
  return asked != nullptr ? std::atoi(asked) : usual;
}

// Bytes of one tile, computed by the program or kept as an item.
Bytes bytes_of_tile(const LoweredTarget& lowered, const OutputTile& tile, std::size_t made,
                    std::uint64_t slab) {
  if (tile.kept) {
    auto bytes = read_chunk(*lowered.outputs.source, *tile.kept);
    REQUIRE(bytes.has_value());
    return *bytes;
  }
  const ProgramOutput& output = lowered.program.output(lowered.made[made]);
  MemoryFile file(output.offset);
  Workspace workspace{SourceOpener(lowered.program, lowered.inputs,
                                   std::make_shared<DecodedItems>(std::uint64_t{1} << 30)),
                      cpu_executor()};
  OutputId id = lowered.made[made];
  SlabLimits limits{slab, slab};
  auto written = write_blocks(lowered.program, id, {0, block_count(lowered.program, id, limits)},
                              workspace, limits, file, nullptr);
  if (!written) FAIL(written.error().message);
  REQUIRE(file.finish(output.offset + output.length));
  return file.bytes;
}

void check_lowered(const DrawnPlan& plan, const TargetState& all, std::uint64_t slab) {
  ResultFormat form{&dcp_format(), 0, "/out"};
  auto lowered = lower_target(all, form);
  if (!lowered) FAIL(lowered.error().message << "\n" << told(plan.steps));
  CHECK(lowered->outputs.tensors.size() == plan.wanted.size());
  std::size_t made = 0;
  for (const OutputTensor& tensor : lowered->outputs.tensors) {
    auto wanted = plan.wanted.find(tensor.fqn);
    REQUIRE(wanted != plan.wanted.end());
    CHECK(tensor.dtype == wanted->second.dtype);
    CHECK(tensor.shape == wanted->second.shape);
    std::int64_t elements = 0;
    for (const OutputTile& tile : tensor.tiles) {
      Bytes bytes = bytes_of_tile(*lowered, tile, made, slab);
      if (!tile.kept) ++made;
      elements += volume(tile.box.sizes).value_or(0);
      if (bytes != bytes_in(wanted->second, tile.box))
        FAIL("a tile of " << tensor.fqn << " differs, slab " << slab << "\n" << told(plan.steps));
    }
    CHECK(elements == volume(tensor.shape));
  }
}

void check_losses(const DrawnPlan& plan, const TargetState& all) {
  std::map<std::string, std::vector<Box>> boxes;
  for (auto& [fqn, loss] : losses_after(all)) boxes[fqn] = loss.boxes;
  for (const auto& [fqn, tensor] : plan.wanted) {
    std::vector<bool> lost(tensor.lost.size(), false);
    for (const Box& box : boxes[fqn]) {
      each_coordinate(box.sizes, [&](Extents at) {
        for (std::size_t d = 0; d < at.size(); ++d) at[d] += box.offsets[d];
        CHECK_FALSE(lost[index_in(at, tensor.shape)]);  // boxes are disjoint
        lost[index_in(at, tensor.shape)] = true;
      });
    }
    if (lost != tensor.lost) FAIL("losses of " << fqn << " differ\n" << told(plan.steps));
  }
}

constexpr std::uint64_t kSlabs[] = {64, 100, 4096, std::uint64_t{64} << 20};

std::map<std::string, Bytes> folder_made(DrawnPlan& plan, const TargetState& all, int threads) {
  const std::string out = "/out" + std::to_string(threads);
  tbb::task_arena arena(threads);
  auto made = arena.execute(
      [&] { return make_target(plan.store, all, run_into(plan, all, out), nullptr); });
  if (!made) FAIL(made.error().message << "\n" << told(plan.steps));
  return proved_files(plan, all, out);
}

}  // namespace

TEST_CASE("random plans make what loops over elements make, with slabs of any size") {
  int count = plans_asked_for(300);
  for (int i = 0; i < count; ++i) {
    Dice dice(static_cast<unsigned>(7000 + i));
    DrawnPlan plan;
    draw_plan(dice, false, plan);
    TargetState all = taken(open_in(plan.store, "/ck"), plan.steps);
    check_lowered(plan, all, kSlabs[i % 4]);
    check_losses(plan, all);
  }
}

TEST_CASE("a folder that is made by random plans is the same on any number of threads") {
  int count = plans_asked_for(200) / 10;
  for (int i = 0; i < count; ++i) {
    Dice dice(static_cast<unsigned>(90'000 + i));
    DrawnPlan plan;
    draw_plan(dice, false, plan);
    TargetState all = taken(open_in(plan.store, "/ck"), plan.steps);
    auto one = folder_made(plan, all, 1);
    CHECK(one == folder_made(plan, all, 2));
    CHECK(one == folder_made(plan, all, 7));
  }
}

TEST_CASE("steps that come back from JSON are the same steps") {
  for (int i = 0; i < 100; ++i) {
    Dice dice(static_cast<unsigned>(500 + i));
    DrawnPlan drawn;
    draw_plan(dice, false, drawn);
    Plan plan;
    plan.steps = drawn.steps;
    plan.format = "dcp";
    std::string text = plan_to_json(plan);
    auto back = plan_from_json(text, "plan.json");
    if (!back) FAIL(back.error().message << text);
    CHECK(plan_to_json(*back) == text);
    CHECK(plan_hash(*back) == plan_hash(plan));
  }
}

namespace {

// The step that undoes a step, for tensors before it; nullopt if it changes no element.
std::optional<Step> inverse_of(const Step& step, const PlainCheckpoint& before) {
  if (const auto* dims = std::get_if<PermuteDimsStep>(&step)) {
    PermuteDimsStep back{dims->tensors, Extents(dims->order.size())};
    for (std::size_t d = 0; d < dims->order.size(); ++d)
      back.order[static_cast<std::size_t>(dims->order[d])] = static_cast<std::int64_t>(d);
    return back;
  }
  if (const auto* blocks = std::get_if<PermuteBlocksStep>(&step)) {
    PermuteBlocksStep back{blocks->tensors, blocks->dim, {}, Extents(blocks->order.size())};
    for (std::size_t i = 0; i < blocks->order.size(); ++i) {
      auto old = static_cast<std::size_t>(blocks->order[i]);
      back.sizes.push_back(blocks->sizes[old]);
      back.order[old] = static_cast<std::int64_t>(i);
    }
    return back;
  }
  if (const auto* split = std::get_if<SplitStep>(&step))
    return ConcatStep{split->into, split->dim, split->tensor, split->drop_dim};
  if (const auto* concat = std::get_if<ConcatStep>(&step)) {
    SplitStep back{concat->into, concat->dim, {}, concat->tensors, concat->new_dim};
    for (const std::string& fqn : concat->tensors) {
      back.sizes.push_back(
          concat->new_dim ? 1 : before.at(fqn).shape[static_cast<std::size_t>(concat->dim)]);
    }
    return back;
  }
  if (const auto* rename = std::get_if<RenameStep>(&step))
    return RenameStep{rename->to, rename->from};
  return std::nullopt;
}

}  // namespace

TEST_CASE("lossless plans can be taken back, step by step") {
  for (int i = 0; i < 100; ++i) {
    Dice dice(static_cast<unsigned>(20'000 + i));
    DrawnPlan plan;
    PlainCheckpoint original = random_tensors(dice), now = original;
    save_in(plan.store, original, dice);
    std::vector<Step> back;
    StepDrawer drawer(now, dice, true);
    for (int k = 0; k < 4; ++k) {
      Step step = drawer.draw();
      if (auto inverse = inverse_of(step, now)) back.insert(back.begin(), *inverse);
      std::visit(PlainSteps{now}, step);
      plan.steps.push_back(std::move(step));
    }
    plan.steps.insert(plan.steps.end(), back.begin(), back.end());
    plan.wanted = original;
    TargetState all = taken(open_in(plan.store, "/ck"), plan.steps);
    check_lowered(plan, all, 4096);
  }
}
