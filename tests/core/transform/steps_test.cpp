// Steps that are refused, and steps that random plans do not contain.
#include <cstdlib>
#include <cstring>
#include <set>

#include "core/formats/items/items.h"
#include "core/formats/table.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/make_target.h"
#include "core/transform/lower.h"
#include "core/transform/named_entries.h"
#include "core/transform/step_cases.h"
#include "core/transform/tilings.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("steps that make no sense are refused with the step and the tensor") {
  Saved saved(two_tensors());
  auto one = [&](Step step) { return refusal(saved, {std::move(step)}); };
  CHECK(says(one(DropStep{{"c.*"}}), "names no tensor"));
  CHECK(says(one(CastStep{{"a.weigth"}, Dtype::kBfloat16}), "step 1 (cast)"));
  CHECK(says(one(CastStep{{"a.weight"}, Dtype::kInt32}), "there is no cast"));
  CHECK(says(one(PermuteDimsStep{{"a.weight"}, {0, 0}}), "every dim"));
  CHECK(says(one(PermuteBlocksStep{{"a.weight"}, 0, {}, {2, 1, 0}}), "not 3 blocks"));
  CHECK(says(one(PermuteBlocksStep{{"a.weight"}, 0, {3, 2}, {1, 0}}), "5 rows together"));
  CHECK(says(one(SplitStep{"a.weight", 0, {2, 3}, {"x", "y"}}), "do not cut"));
  CHECK(says(one(SplitStep{"a.weight", 0, {2, 1}, {"x", "y"}}), "3 rows together"));
  CHECK(says(one(SplitStep{"a.weight", 2, {4}, {"x"}}), "has no dim 2"));
  CHECK(says(one(ConcatStep{{"a.weight", "b.weight"}, 1, "c"}), "does not go with"));
  CHECK(says(one(ConcatStep{{"a.weight", "a.weight"}, 0, "c"}), "named twice"));
  CHECK(says(one(RenameStep{"a.weight", "b.weight"}), "two entries would have this name"));
  CHECK(says(one(RenameStep{"(", "x", true}), "not a regular expression"));
  CHECK(says(one(RenameStep{"nothing", "x"}), "names no entry"));
  CHECK(says(one(TrimStep{{"a.weight"}, {{0, 0}, {5, 6}}}), "not a box"));
  CHECK(says(one(PadStep{{"a.weight"}, {0}, {0}, 0}), "every dim"));
  CHECK(says(one(PadStep{{"a.weight"}, {0, INT64_MAX}, {0, 1}, 0}), "cannot be padded"));
  CHECK(says(one(MaskStep{{"a.weight"}, {{{0, 0}, {4, 7}}}, 0}), "not a box"));
  CHECK(says(one(RetileStep{{"a.weight"}, {{{{0, 0}, {3, 6}}, 0}}}), "exactly once"));
  CHECK(says(one(ReshardStep{{"a.weight"}, {{{"dp", 2}}}, {}}), "placements are named"));
  CHECK(says(one(ReshardStep{{"a.weight"}, {{{"dp", 2}}}, {{Placement::Kind::kPartial, 0, 1}}}),
             "Partial"));
  CHECK(says(one(RelabelStep{"a.weight", {4, 6}, {{99, {0, 0}}}}), "no tile 99"));
  CHECK(says(one(RelabelStep{"a.weight", {9, 9}, {}}), "saved nowhere"));
  CHECK(says(one(RelabelStep{"a.weight", {4, 6}, {{0, {0, 0}}, {0, {2, 0}}}}), "taken twice"));
  CHECK(says(one(RestoreStep{"a.weight", {"../x", 0, 4, {1, 1}}, Dtype::kFloat32, {0, 0}}),
             "not a file of the checkpoint"));
  CHECK(says(one(RestoreStep{"a.weight", {"x.bin", 0, 4, {1, 1}}, Dtype::kFloat32, {0, 0}}),
             "does not hold the bytes"));
  CHECK(says(one(DequantiseStep{{"a.weight"}, "_scale_inv", {2, 2}, Dtype::kBfloat16}),
             "names no tensor"));
  CHECK(says(one(DequantiseStep{{"a.weight"}, "weight", {2, 2}, Dtype::kBfloat16}),
             "names only factors"));
}

TEST_CASE("a payload next to the checkpoint goes where a step restores it") {
  Saved saved(two_tensors());
  Bytes payload(3 * sizeof(double));
  for (int i = 0; i < 3; ++i) {
    double value = 0.5 + i;
    std::memcpy(payload.data() + 8 * i, &value, 8);
  }
  saved.store.put("/ck/side.bin", payload);
  saved.store.put("/ck/integrity.json", {});  // hashes of files that have changed since
  RestoreStep step{"a.weight", {"side.bin", 8, 16, {1, 2}}, Dtype::kFloat64, {3, 4}};
  auto all = apply_steps(target_state_of(open_in(saved.store, "/ck")), {step});
  REQUIRE(all.has_value());
  make_into(saved.store, *all, "/out");
  Bytes bytes = read_back(saved.store, "/out", "a.weight");
  float last[2];
  std::memcpy(last, bytes.data() + (3 * 6 + 4) * 4, sizeof last);
  CHECK(last[0] == 1.5f);
  CHECK(last[1] == 2.5f);
  CHECK(saved.store.get("/out/side.bin").has_value());
  CHECK_FALSE(saved.store.get("/out/integrity.json").has_value());
}

TEST_CASE("what a side file replaces, and tiles that a relabel leaves behind, count as lost") {
  Saved saved(two_tensors());
  saved.store.put("/ck/side.bin", Bytes(8));
  RestoreStep step{"a.weight", {"side.bin", 0, 8, {1, 2}}, Dtype::kFloat32, {3, 4}};
  auto all = apply_steps(target_state_of(open_in(saved.store, "/ck")), {step});
  REQUIRE(all.has_value());
  auto losses = losses_after(*all);
  REQUIRE(losses.size() == 1);
  CHECK(losses[0].second.fill == "side");
  std::int64_t lost = 0;
  for (const Box& box : losses[0].second.boxes) lost += *volume(box.sizes);
  CHECK(lost == 2);

  RelabelStep fewer{"a.weight", {4, 6}, {}};
  auto left = apply_steps(target_state_of(saved.checkpoint), {fewer, FillStep{{"a.weight"}}});
  REQUIRE(left.has_value());
  CHECK(left->trimmed == 24);
}

namespace {

std::int64_t lost_of(const TargetState& all, const std::string& fqn) {
  std::int64_t lost = 0;
  for (const auto& [name, loss] : losses_after(all)) {
    for (const Box& box : loss.boxes) lost += name == fqn ? *volume(box.sizes) : 0;
  }
  return lost;
}

}  // namespace

TEST_CASE("padding that is cut off again is not a loss, and what it was next to is") {
  Saved saved(two_tensors());
  auto trimmed = [&](const std::vector<Step>& steps) {
    auto all = apply_steps(target_state_of(saved.checkpoint), steps);
    REQUIRE(all.has_value());
    return all->trimmed;
  };
  const PadStep pad{{"a.weight"}, {1, 0}, {0, 2}, 7};  // [4, 6] is at [1, 0] of [5, 8]
  const TrimStep back{{"a.weight"}, {{1, 0}, {4, 6}}}, row{{"a.weight"}, {{2, 0}, {3, 8}}};
  const PermuteDimsStep turn{{"a.weight"}, {1, 0}};
  const CastStep cast{{"a.weight"}, Dtype::kBfloat16};
  CHECK(trimmed({pad, back}) == 0);
  CHECK(trimmed({pad, row}) == 6);
  CHECK(trimmed({pad, cast, turn, turn, row}) == 6);
  CHECK(trimmed({pad, RelabelStep{"a.weight", {4, 6}, {}}, FillStep{{"a.weight"}}}) == 24);
  // A masked element of the padding counts like any other.
  CHECK(trimmed({pad, MaskStep{{"a.weight"}, {{{0, 0}, {1, 2}}}, 0}, back}) == 2);
}

TEST_CASE("thousands of boxes are masked one by one, and nothing next to them") {
  constexpr std::int64_t kBoxes = 8000;
  PlainTensor tensor = counted(Dtype::kFloat32, {2 * kBoxes, 2});
  Saved saved({{"a", tensor}});
  MaskStep mask{{"a"}, {}, 0};
  for (std::int64_t i = 0; i < kBoxes; ++i) mask.boxes.push_back({{2 * i, 1}, {1, 1}});
  auto all = apply_steps(target_state_of(saved.checkpoint), {mask});
  REQUIRE(all.has_value());
  CHECK(lost_of(*all, "a") == kBoxes);
  std::int64_t kept = 0;
  auto masked = copy_of_entry(*all, 0);
  REQUIRE(masked.has_value());
  for (const Part& part : masked->parts) {
    if (std::holds_alternative<FromConstant>(part.from)) continue;
    kept += *volume(part.box.sizes);
    for (std::int64_t row = part.box.offsets[0]; row < part.box.offsets[0] + part.box.sizes[0];
         ++row) {
      bool is_masked = row % 2 == 0 && part.box.offsets[1] + part.box.sizes[1] > 1;
      CHECK_FALSE(is_masked);
    }
  }
  CHECK(kept == 3 * kBoxes);
}

TEST_CASE("what is multiplied by a factor that is lost is lost") {
  Saved saved({{"q", counted(Dtype::kFloat8E4m3fn, {5, 3})},
               {"q_scale_inv", counted(Dtype::kFloat32, {3, 2})}});
  const MaskStep mask{{"q_scale_inv"}, {{{2, 0}, {1, 1}}, {{0, 1}, {1, 1}}}, 1};
  auto all = apply_steps(target_state_of(saved.checkpoint),
                         {mask, DequantiseStep{{"q"}, "_scale_inv", {2, 2}, Dtype::kBfloat16}});
  REQUIRE(all.has_value());
  auto losses = losses_after(*all);
  REQUIRE(losses.size() == 1);
  CHECK(losses[0].second.fill == "mixed");
  CHECK(losses[0].second.boxes == std::vector<Box>{{{4, 0}, {1, 2}}, {{0, 2}, {2, 1}}});
}

TEST_CASE("a tile that an earlier repair filled is as foreign in the tensor that takes it") {
  Saved saved({{"a", counted(Dtype::kFloat32, {4})}, {"b", counted(Dtype::kFloat32, {4})}});
  auto masked = apply_steps(target_state_of(saved.checkpoint),
                            {RetileStep{{"a", "b"}, {}}, MaskStep{{"b"}, {{{1}, {2}}}, 0}});
  REQUIRE(masked.has_value());
  make_into(saved.store, *masked, "/masked");
  auto checkpoint = open_in(saved.store, "/masked");
  const ChunkId of_a = checkpoint->chunks(*checkpoint->find("a"))[0];
  const ChunkId of_b = checkpoint->chunks(*checkpoint->find("b"))[0];
  auto tile = [](ChunkId chunk, std::int64_t at) {
    return RelabelStep::Tile{static_cast<std::uint32_t>(index_of(chunk)), {at}};
  };
  auto all = apply_steps(target_state_of(checkpoint),
                         {RelabelStep{"a", {8}, {tile(of_a, 0), tile(of_b, 4)}}});
  REQUIRE(all.has_value());
  CHECK(lost_of(*all, "a") == 2);
  CHECK(lost_of(*all, "b") == 2);
  auto losses = losses_after(*all);
  CHECK(losses[0].second.boxes == std::vector<Box>{{{5}, {2}}});
  CHECK(losses[0].second.fill == "zero");
  // The tensor's own tile brings no foreign elements.
  auto own = apply_steps(target_state_of(checkpoint), {RelabelStep{"a", {4}, {tile(of_a, 0)}}});
  REQUIRE(own.has_value());
  CHECK(lost_of(*own, "a") == 0);
}

TEST_CASE("an entry that is there under the very name is left out alone") {
  Saved saved({{"w[01]", counted(Dtype::kFloat32, {2})},
               {"w0", counted(Dtype::kFloat32, {2})},
               {"w1", counted(Dtype::kFloat32, {2})}});
  auto named = apply_steps(target_state_of(saved.checkpoint), {DropStep{{"w[01]"}}});
  REQUIRE(named.has_value());
  CHECK(named->dropped == std::vector<std::string>{"w[01]"});
  // After that no entry has the name, so it is a pattern.
  auto twice = apply_steps(std::move(*named), {DropStep{{"w[01]"}}});
  REQUIRE(twice.has_value());
  CHECK(twice->dropped == std::vector<std::string>{"w[01]", "w0", "w1"});
}

TEST_CASE("a value that the dtype does not hold is refused and never becomes another one") {
  auto refused = [](Dtype dtype, double value) { return !constant_of(dtype, value).has_value(); };
  CHECK(refused(Dtype::kFloat16, 1e5));
  CHECK(refused(Dtype::kFloat32, 1e39));
  CHECK(refused(Dtype::kBfloat16, -1e39));
  CHECK(refused(Dtype::kFloat8E4m3fn, 1000));
  CHECK(refused(Dtype::kFloat8E5m2, 1e6));
  CHECK(refused(Dtype::kInt64, 9007199254740992.0));  // or one more, as JSON reads it
  CHECK(refused(Dtype::kUint8, 256));
  CHECK(refused(Dtype::kBool, 2));
  CHECK_FALSE(refused(Dtype::kFloat16, 65504));
  CHECK_FALSE(refused(Dtype::kFloat8E4m3fn, 448));
  CHECK_FALSE(refused(Dtype::kFloat64, 1e300));
  CHECK_FALSE(refused(Dtype::kInt64, 9007199254740991.0));
}

TEST_CASE("a key that is twice in a plan is named, wherever it is") {
  for (
      const char* steps :
      {R"([{"step": "mask", "tensors": ["a"], "boxes": [], "value": 1, "value": 2}])",
       R"([{"step": "mask", "tensors": ["a"], "boxes": [{"offsets": [0], "offsets": [1], "sizes": [1]}]}])",
       R"([{"step": "drop", "step": "drop", "tensors": ["a"]}])"}) {
    auto read = plan_from_json(
        std::string(R"({"schema": "shardwright/2", "steps": )") + steps + "}", "plan.json");
    REQUIRE_FALSE(read.has_value());
    CHECK(says(read.error().message, "occurs twice"));
  }
  const char* whole = R"({"schema": "shardwright/2", "steps": [], "steps": []})";
  CHECK_FALSE(plan_from_json(whole, "plan.json").has_value());
  const char* apart = R"({"schema": "shardwright/2", "steps": [{"step": "drop", "tensors": ["a"]},
                          {"step": "drop", "tensors": ["b"]}]})";
  CHECK(plan_from_json(apart, "plan.json").has_value());
}

TEST_CASE("a plan of the JSON's version 1 is read, of an unknown version it is not") {
  const auto plan_of = [](const std::string& schema) {
    return plan_from_json(
        R"({"schema": ")" + schema + R"(", "steps": [{"step": "drop", "tensors": ["a"]}]})",
        "plan.json");
  };
  CHECK(plan_of("shardwright/1").has_value());
  CHECK(plan_of("shardwright/2").has_value());
  CHECK_FALSE(plan_of("shardwright/3").has_value());
}

TEST_CASE("tiles can be taken for other boxes than those that were recorded") {
  MemoryStore store;
  PlainCheckpoint wrong{{"w", counted(Dtype::kFloat32, {4, 2})}};
  Dice dice(1);
  save_in(store, wrong, dice);
  auto checkpoint = open_in(store, "/ck");
  RelabelStep step{"w", {4, 2}, {}};
  // Each tile is at the mirrored place, as far as sizes allow: any exact tiling is fine.
  for (ChunkId chunk : checkpoint->chunks(TensorId{0})) {
    Extents offsets(2);
    for (std::size_t d = 0; d < 2; ++d)
      offsets[d] = step.shape[d] - checkpoint->offsets(chunk)[d] - checkpoint->sizes(chunk)[d];
    step.tiles.push_back({static_cast<std::uint32_t>(index_of(chunk)), offsets});
  }
  auto all = apply_steps(target_state_of(checkpoint), {step});
  REQUIRE(all.has_value());
  make_into(store, *all, "/out");
  auto made = open_in(store, "/out");
  std::size_t compared = 0;
  for (std::size_t i = 0; i < step.tiles.size(); ++i) {
    for (ChunkId chunk : made->chunks(TensorId{0})) {
      if (!same(made->offsets(chunk), step.tiles[i].offsets)) continue;
      CHECK(*read_chunk(*made, chunk) == *read_chunk(*checkpoint, ChunkId{step.tiles[i].chunk}));
      ++compared;
    }
  }
  CHECK(compared == step.tiles.size());
}

TEST_CASE("names are changed by regular expressions, and paths with them") {
  Saved saved({{"module.layers.0.w", counted(Dtype::kFloat32, {2})},
               {"module.layers.1.w", counted(Dtype::kFloat32, {2})},
               {"head", counted(Dtype::kFloat32, {2})}});
  RenameStep step{"module\\.layers\\.(\\d+)\\.(.*)", "model.blocks.$1.$2", true};
  auto all = apply_steps(target_state_of(saved.checkpoint), {step});
  REQUIRE(all.has_value());
  std::set<std::string> names;
  for (const TargetEntry& entry : all->tensors) names.insert(entry.fqn);
  CHECK(names == std::set<std::string>{"model.blocks.0.w", "model.blocks.1.w", "head"});
}

TEST_CASE("elements that nobody saved are filled, and count as lost") {
  MemoryStore store;
  PlainTensor w = counted(Dtype::kFloat32, {2, 4});
  Dice dice(5);
  save_in(store, {{"w", w}}, dice);
  auto checkpoint = open_in(store, "/ck");
  RelabelStep wider{"w", {4, 4}, {}};
  for (ChunkId chunk : checkpoint->chunks(TensorId{0}))
    wider.tiles.push_back(
        {static_cast<std::uint32_t>(index_of(chunk)), copy_of(checkpoint->offsets(chunk))});
  auto all = apply_steps(target_state_of(checkpoint), {wider, FillStep{{"w"}}});
  REQUIRE(all.has_value());
  auto losses = losses_after(*all);
  REQUIRE(losses.size() == 1);
  CHECK(losses[0].second.fill == "zero");
  std::int64_t lost = 0;
  for (const Box& box : losses[0].second.boxes) lost += *volume(box.sizes);
  CHECK(lost == 8);
}

TEST_CASE("the first pattern that matches gives a tensor its placements") {
  Mesh mesh{{{"dp", 2}, {"tp", 2}}};
  const char* good = R"json({"*.bias": ["Replicate", "Replicate"],
                             "layers.?.w*": ["Shard(1)", "Shard(0)"]})json";
  auto rules = placement_rules_from_json(good, "p.json", mesh);
  REQUIRE(rules.has_value());
  CHECK(to_text(placements_by_rules(*rules, "layers.3.bias", 1, mesh)) == "Replicate, Replicate");
  CHECK(to_text(placements_by_rules(*rules, "layers.3.weight", 2, mesh)) == "Shard(1), Shard(0)");
  CHECK(to_text(placements_by_rules(*rules, "head", 2, mesh)) == "Shard(0), Replicate");
  CHECK(to_text(placements_by_rules(*rules, "step", 0, mesh)) == "Replicate, Replicate");
  for (const char* bad :
       {"[", "[]", R"json({"*": "Shard(0)"})json", R"json({"*": ["Shard(0)"]})json",
        R"json({"*": ["Shard(0)", "Shrad(1)"]})json", R"json({"*": [1, 2]})json"}) {
    auto refused = placement_rules_from_json(bad, "p.json", mesh);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().place.file == "p.json");
  }
  const std::string deep = "{\"*\": [\"Shard(0)\", " + std::string(200'000, '[') + "1" +
                           std::string(200'000, ']') + "]}";
  auto refused = placement_rules_from_json(deep, "p.json", mesh);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message == "is nested 8 deep, which no placements are");
}

TEST_CASE(
    "plans that were edited into nonsense are refused, or lower to a program that is proved") {
  const char* asked = std::getenv("SHARDWRIGHT_PLANS");
  int count = asked != nullptr ? std::atoi(asked) : 1'000, refused = 0;
  for (int i = 0; i < count; ++i) {
    Dice dice(static_cast<unsigned>(40'000 + i));
    Saved saved(random_tensors(dice));
    PlainCheckpoint wanted = saved.tensors;
    Plan plan;
    StepDrawer drawer(wanted, dice, false);
    for (int k = 0; k < 2; ++k) {
      plan.steps.push_back(drawer.draw());
      std::visit(PlainSteps{wanted}, plan.steps.back());
    }
    std::string text = plan_to_json(plan);
    for (std::int64_t edits = dice.pick(1, 3); edits > 0; --edits) {
      auto at = static_cast<std::size_t>(dice.pick(0, static_cast<std::int64_t>(text.size()) - 1));
      static constexpr std::string_view kOther = "0123456789-\"[]{},:.eE ntf\\";
      char put = kOther[static_cast<std::size_t>(dice.pick(0, kOther.size() - 1))];
      if (dice.one_in(3))
        text.erase(at, 1);
      else
        text[at] = put;
      if (text.empty()) text = "x";
    }
    auto edited = plan_from_json(text, "plan.json");
    if (!edited) {
      CHECK(edited.error().place.file == "plan.json");
      ++refused;
      continue;
    }
    auto all = apply_steps(target_state_of(saved.checkpoint), edited->steps);
    if (!all) {
      ++refused;
      continue;
    }
    // The remaining steps form a plan that is lowered and proved, or refused.
    auto lowered = lower_target(*all, {&written_format("dcp"), 0, "/out"});
    if (!lowered) ++refused;
  }
  CHECK(refused > count / 4);
}

TEST_CASE("what a step is wrong about is said of the step, whenever it is found") {
  Saved saved(two_tensors());
  const Checkpoint& c = *saved.checkpoint;
  auto number_of = [&](const char* fqn) {
    return static_cast<std::uint32_t>(index_of(c.chunks(*c.find(fqn))[0]));
  };
  const std::string overlap = refusal(
      saved,
      {RelabelStep{
          "a.weight", {4, 6}, {{number_of("a.weight"), {0, 0}}, {number_of("b.weight"), {0, 0}}}}});
  CHECK(says(overlap, "step 1 (relabel): two of its \"tiles\" would hold the same elements"));
  CHECK_FALSE(says(overlap, "repair it first"));
  const ReshardStep partial{{"a.weight"}, {{{"dp", 2}}}, {{Placement::Kind::kPartial, 0, 1}}};
  const std::string late = refusal(saved, {CastStep{{"b.weight"}, Dtype::kBfloat16}, partial});
  CHECK(says(late, "step 2 (reshard): Partial"));
  CHECK(says(late, "a.weight"));
  FillStep fill{{"a.weight"}};
  fill.from_checkpoint = "beside/ck";
  fill.boxes = {{{0, 0}, {1, 1}}};
  auto filled = apply_steps(target_state_of(saved.checkpoint), {fill});
  REQUIRE_FALSE(filled.has_value());
  CHECK(says(filled.error().advice, "relative path starts at the folder of the plan's file"));
}

TEST_CASE("pads one after the other are one frame, and a different value is around it") {
  Saved saved(two_tensors());
  const PadStep pad{{"a.weight"}, {1, 0}, {0, 2}, 7}, other{{"a.weight"}, {0, 1}, {0, 0}, 8};
  std::vector<Step> steps(40, pad);
  steps.push_back(other);
  auto all = apply_steps(target_state_of(saved.checkpoint), steps);
  REQUIRE(all.has_value());
  auto tensor = tensor_of(*all, all->tensors[0]);
  REQUIRE(tensor.has_value());
  CHECK(to_text(tensor->shape) == "[44, 87]");
  CHECK(tensor->parts.size() <= saved.checkpoint->chunk_count() + 3);
  make_into(saved.store, *all, "/padded");
  const Bytes made = read_back(saved.store, "/padded", "a.weight");
  for (std::int64_t row = 0; row < 44; ++row) {
    for (std::int64_t column = 0; column < 87; ++column) {
      float value = 0;
      std::memcpy(&value, made.data() + 4 * (row * 87 + column), sizeof value);
      const bool is_inner = row >= 40 && column >= 1 && column < 7;
      const float inner = static_cast<float>((row - 40) * 6 + column - 1);
      if (value != (column == 0 ? 8.0F : is_inner ? inner : 7.0F)) {
        CAPTURE(row);
        CAPTURE(column);
        CHECK(value == -1);
      }
    }
  }
  steps.insert(steps.begin() + 1, PadStep{{"a.weight"}, {-1, 0}, {0, 0}, 7});
  CHECK(says(refusal(saved, steps), "step 2 (pad)"));
}
