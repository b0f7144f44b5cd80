#include "core/repair/plan/planned_states.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/rules/layout/made.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("a state that is by a chunk which gets another box stays out of that repair") {
  Made made;
  made.tensor("model.a.weight", {8, 2},
              {{{0, 0}, {2, 2}, 0}, {{2, 0}, {2, 2}, 1}, {{4, 0}, {2, 2}, 2}, {{6, 0}, {2, 2}, 3}})
      .tensor("optimizer.state.a.weight.momentum_buffer", {2, 2}, {{{0, 0}, {2, 2}, 1}});
  auto c = made.builder.finish();
  const TensorId weight = *c->find("model.a.weight");
  const TensorId state = *c->find("optimizer.state.a.weight.momentum_buffer");
  auto box_at = [](std::int64_t row) { return Box{{row, 0}, {2, 2}}; };
  const Diagnosis exchanged =
      WrongBoxes{weight, {8, 2}, {box_at(0), box_at(4), box_at(2), box_at(6)}};
  auto refused_at = [&](std::int64_t row, bool with_layout) {
    const Diagnosis part =
        PartlyLost{state, {8, 2}, {{c->chunks(state)[0], box_at(0), {row, 0}}}, ""};
    // Expectations from a reference, and those that a spec can add.
    Spec spec;
    spec.entries["model.a.weight"].shape = {8, 2};
    if (with_layout) {
      spec.entries["model.a.weight"].mesh = parse_mesh("dp=2,tp=2").value();
      for (const char* text : {"StridedShard(0,sf=2)", "Shard(0)"})
        spec.entries["model.a.weight"].placements.push_back(parse_placement(text).value());
    }
    return states_of_moved_parameters(*c, &spec, {{weight, &exchanged}, {state, &part}}, nullptr)
        .contains(state);
  };
  for (bool with_layout : {false, true}) {
    CAPTURE(with_layout);
    CHECK(refused_at(2, with_layout));  // the recorded place of rank 1's chunk
    CHECK_FALSE(refused_at(4, with_layout));
  }
}

TEST_CASE("a state stays out where another one of its parameter is moved from under it") {
  Made made;
  const std::vector<SavedTile> tiles = {
      {{0, 0}, {2, 2}, 0}, {{2, 0}, {2, 2}, 1}, {{4, 0}, {2, 2}, 2}, {{6, 0}, {2, 2}, 3}};
  made.tensor("model.a.weight", {8, 2}, tiles)
      .tensor("optimizer.state.a.weight.exp_avg", {8, 2}, tiles)
      .tensor("optimizer.state.a.weight.exp_avg_sq", {2, 2}, {{{0, 0}, {2, 2}, 1}});
  auto c = made.builder.finish();
  const TensorId mean = *c->find("optimizer.state.a.weight.exp_avg");
  const TensorId square = *c->find("optimizer.state.a.weight.exp_avg_sq");
  auto box_at = [](std::int64_t row) { return Box{{row, 0}, {2, 2}}; };
  auto refused_at = [&](std::int64_t row, const std::vector<Box>& boxes) {
    const Diagnosis exchanged = WrongBoxes{mean, {8, 2}, boxes};
    const Diagnosis part =
        PartlyLost{square, {8, 2}, {{c->chunks(square)[0], box_at(0), {row, 0}}}, ""};
    return states_of_moved_parameters(*c, nullptr, {{mean, &exchanged}, {square, &part}}, nullptr)
        .contains(square);
  };
  // Equal bytes show that rank 1 has rows 4 and 5 of the mean, and so of its square.
  const std::vector<Box> moved = {box_at(0), box_at(4), box_at(2), box_at(6)};
  CHECK(refused_at(2, moved));
  CHECK_FALSE(refused_at(4, moved));
  // No row of the mean moves, so the parameter's chunks tell the places.
  CHECK_FALSE(refused_at(2, {box_at(0), box_at(2), box_at(4), box_at(6)}));
}
