// Cases that look like one failure but are another one, or none. They were found with random
// layouts of known truth: a certain answer was wrong, or a true cause had a wrong name.
#include "core/facts/names/expert_family.h"
#include "core/rules/layout/made.h"

using namespace shw;

namespace {

// Adds the whole tensor as one tile of one rank.
Made& whole_by(Made& made, const std::string& fqn, const Extents& shape, std::uint32_t writer) {
  return made.tensor(fqn, shape, {{Extents(shape.size(), 0), shape, writer}});
}

}  // namespace

TEST_CASE("a down_proj that moved alone by a square leaves gates alone that know the hidden size") {
  // E 4, H 4, I 8; down saved as [4, 4 * 4, 8 / 4]: a family of H = 4 in the other layout, moved by
  // 2 as one, has these shapes too.
  ExpertFamily family{Extents{4, 8, 4}, Extents{4, 8, 4}, Extents{4, 16, 2}};
  CHECK(judge(family, 4).state == FamilyJudgement::State::kUnknown);
  CHECK(judge(family, 8).state == FamilyJudgement::State::kMoved);
  // The same layout, if no gate has the hidden size as last dim: H 6, I 10, moved by 2.
  ExpertFamily other{Extents{4, 12, 5}, Extents{4, 12, 5}, Extents{4, 20, 3}};
  CHECK(judge(other, 6).state == FamilyJudgement::State::kMoved);
}

TEST_CASE("states that are named without a state are optimizer states") {
  Made made;
  made.tensor("model.fc.weight", {8, 2}, {{{0, 0}, {4, 2}, 0}, {{4, 0}, {4, 2}, 1}});
  whole_by(made, "optimizer.model.fc.weight.exp_avg", {4, 2}, 0);
  whole_by(made, "optimizer.model.fc.weight.exp_avg_sq", {4, 2}, 1);
  whole_by(made, "optimizer.model.fc.weight.momentum_buffer", {4, 2}, 1);
  Seen seen = look(made, false);
  REQUIRE(seen.find("local-saved-as-global") != nullptr);
  CHECK(seen.find("local-saved-as-global")->subjects.size() == 3);
  CHECK(seen.retained_chunks("optimizer.model.fc.weight.momentum_buffer") == "4+4<1");
}

TEST_CASE("experts that the spec names are counted with those that it does not") {
  auto layer = [](std::int64_t experts) {
    Made made;
    whole_by(made, "model.layers.0.mlp.gate.weight", {experts, 4}, 0);
    for (std::uint32_t i = 0; i < 2; ++i) {
      std::string stem = "model.layers.0.mlp.experts.linear_fc";
      whole_by(made, stem + "1.weight" + std::to_string(i), {6, 4}, i);
      whole_by(made, stem + "2.weight" + std::to_string(i), {4, 3}, i);
    }
    made.expect("model.layers.0.mlp.experts.linear_fc1.weight0", {6, 4});
    made.expect("model.layers.0.mlp.experts.linear_fc2.weight1", {4, 3});
    return made;
  };
  Made both = layer(2);
  CHECK(look(both).quiet());
  Made too_few = layer(4);
  REQUIRE(look(too_few, false).find("axis-dropped") != nullptr);
}

TEST_CASE("a state of no known parameter is not placed on a mesh that all tensors contradict") {
  auto saved_by = [](const std::vector<std::uint32_t>& ranks) {
    Made made;
    for (const char* fqn : {"a.weight", "b.weight"}) {
      std::vector<SavedTile> tiles;
      for (std::int64_t i = 0; i < 4; ++i)
        tiles.push_back({{2 * i, 0}, {2, 2}, ranks[static_cast<std::size_t>(i)]});
      made.tensor(fqn, {8, 2}, tiles).expect(fqn, {8, 2}, "dp=4", {"Shard(0)"});
    }
    whole_by(made, "optimizer.state.c.weight.momentum_buffer", {2, 2}, 2)
        .expect("optimizer.state.c.weight.momentum_buffer", {8, 2}, "dp=4", {"Shard(0)"});
    return look(made);
  };
  Seen seen = saved_by({0, 1, 2, 3});
  REQUIRE(seen.find("local-saved-as-global") != nullptr);
  CHECK(seen.retained_chunks("optimizer.state.c.weight.momentum_buffer") == "4+2<2");
  seen = saved_by({2, 0, 3, 1});
  REQUIRE(seen.find("local-saved-as-global") != nullptr);
  CHECK(seen.find("local-saved-as-global")->remedy == std::nullopt);
  CHECK(seen.retained_chunks("optimizer.state.c.weight.momentum_buffer").empty());
}

TEST_CASE("survivors are not shifted where another axis has their writers the other way round") {
  auto saved = [](std::int64_t first_rows, std::int64_t row_of_1, std::int64_t row_of_7) {
    Made made;
    const std::int64_t rest = 8 - first_rows;
    made.tensor("o.weight", {8, 2},
                {{{row_of_1, 0}, {row_of_1 == 0 ? first_rows : rest, 2}, 1},
                 {{row_of_7, 0}, {row_of_7 == 0 ? first_rows : rest, 2}, 7}})
        .expect("o.weight", {8, 8}, "fsdp=2,tp=4", {"Shard(0)", "Shard(1)"});
    return look(made);
  };
  for (std::int64_t rows : {4, 3}) {  // on the grid, and in buckets
    Seen seen = saved(rows, 0, rows);
    REQUIRE(seen.find("axis-dropped") != nullptr);
    CHECK(seen.find("axis-dropped")->remedy.has_value());
    seen = saved(rows, rows, 0);  // by the spec the rows of rank 1 come first
    REQUIRE(seen.find("axis-dropped") != nullptr);
    CHECK(seen.find("axis-dropped")->remedy == std::nullopt);
    CHECK(seen.retained_chunks("o.weight").empty());
  }
}

TEST_CASE("survivors that fit the spec's ranks are left open next to others that do not") {
  // Both tensors are on the mesh, saved by ranks 1 and 7; of the second, the later rank has the
  // first rows.
  auto saved = [](bool second_fits) {
    Made made;
    for (const char* name : {"o.weight", "q.weight"}) {
      const bool fits = second_fits || name[0] == 'o';
      made.tensor(name, {8, 2},
                  {{{0, 0}, {4, 2}, fits ? 1u : 7u}, {{4, 0}, {4, 2}, fits ? 7u : 1u}})
          .expect(name, {8, 8}, "fsdp=2,tp=4", {"Shard(0)", "Shard(1)"});
    }
    return look(made);
  };
  CHECK_FALSE(saved(true).retained_chunks("o.weight").empty());
  CHECK_FALSE(saved(true).retained_chunks("q.weight").empty());
  const Seen doubted = saved(false);
  REQUIRE(doubted.find("axis-dropped") != nullptr);
  CHECK(doubted.retained_chunks("o.weight").empty());
  CHECK(doubted.retained_chunks("q.weight").empty());
}

TEST_CASE("what flat buckets cut is not placed on the grid of the spec") {
  // Rank 1 holds rows [2, 6) of both; a state of four rows has the size of its part of the grid.
  Made made;
  made.tensor("a.weight", {12, 2}, {{{0, 0}, {2, 2}, 0}, {{2, 0}, {4, 2}, 1}, {{6, 0}, {6, 2}, 2}})
      .expect("a.weight", {12, 2}, "dp=3", {"Shard(0)"});
  whole_by(made, "state.7.momentum_buffer", {4, 2}, 1)
      .expect("state.7.momentum_buffer", {12, 2}, "dp=3", {"Shard(0)"});
  whole_by(made, "b.weight", {4, 2}, 1).expect("b.weight", {12, 2}, "dp=3", {"Shard(0)"});
  Seen seen = look(made);
  REQUIRE(seen.find("axis-dropped") != nullptr);
  CHECK(seen.find("axis-dropped")->remedy == std::nullopt);
  CHECK(seen.retained_chunks("b.weight").empty());
  CHECK(seen.retained_chunks("state.7.momentum_buffer").empty());
}

TEST_CASE("a state goes to the chunk that its writer has of a parameter in flat buckets") {
  Made made;
  made.tensor("model.a.weight", {12, 2},
              {{{0, 0}, {2, 2}, 0}, {{2, 0}, {4, 2}, 1}, {{6, 0}, {6, 2}, 2}})
      .expect("model.a.weight", {12, 2}, "dp=3", {"Shard(0)"});
  // On the grid of the spec rank 1 would hold rows [4, 8).
  whole_by(made, "optimizer.state.a.weight.momentum_buffer", {4, 2}, 1)
      .expect("optimizer.state.a.weight.momentum_buffer", {12, 2}, "dp=3", {"Shard(0)"});
  Seen seen = look(made);
  REQUIRE(seen.find("local-saved-as-global") != nullptr);
  CHECK(seen.find("local-saved-as-global")->remedy.has_value());
  CHECK(seen.retained_chunks("optimizer.state.a.weight.momentum_buffer") == "2+4<1");
}

TEST_CASE("a replica's chunk of a parameter in flat buckets is the place of the rank's state") {
  auto state_by = [](std::uint32_t writer, std::int64_t rows) {
    Made made;
    made.tensor("model.norm.weight", {8}, {{{0}, {4}, 0}, {{4}, {2}, 3}, {{6}, {2}, 4}})
        .expect("model.norm.weight", {8}, "dp=4,tp=2", {"Shard(0)", "Replicate"});
    const std::string state = "optimizer.state.norm.weight.momentum_buffer";
    whole_by(made, state, {rows}, writer)
        .expect(state, {8}, "dp=4,tp=2", {"Shard(0)", "Replicate"});
    return look(made).retained_chunks(state);
  };
  CHECK(state_by(1, 4) == "0+4<1");
  // On the spec's mesh rank 5 would have rows [4, 6), which another rank has.
  CHECK(state_by(5, 2) == "6+2<5");
}

TEST_CASE("expert and expert-tensor ranks that vanish together are placed by who wrote what") {
  // edp 2 x ep 2 x etp 2, one row a rank: FSDP2 knew edp alone (failures.md 5).
  Made made;
  made.tensor("experts.fc1.weight0", {2, 3}, {{{0, 0}, {1, 3}, 1}, {{1, 0}, {1, 3}, 6}})
      .expect("experts.fc1.weight0", {8, 3}, "edp=2,ep=2,etp=2", {"S(0)", "S(0)", "S(0)"},
              "expert");
  made.tensor("experts.fc2.weight0", {2, 3}, {{{0, 0}, {1, 3}, 3}, {{1, 0}, {1, 3}, 4}})
      .expect("experts.fc2.weight0", {4, 6}, "edp=2,ep=2,etp=2", {"S(0)", "S(0)", "S(1)"},
              "expert");
  Seen seen = look(made);
  REQUIRE(seen.find("axis-dropped") != nullptr);
  const Finding& finding = *seen.find("axis-dropped");
  CHECK(finding.cause.find("mesh axes ep (2) and etp (2)") != std::string::npos);
  CHECK(finding.subjects.size() == 2);
  CHECK(seen.number(finding, "total_lost_elements") == 8 * 3 + 4 * 6 - 12);
  CHECK(seen.retained_chunks("experts.fc1.weight0") == "1+1<1 6+1<6");
  CHECK(seen.retained_chunks("experts.fc2.weight0") == "1+1<3 2+1<4");
}

TEST_CASE("a model that is smaller in two dimensions has lost no axes") {
  Made made;
  whole_by(made, "fc.weight", {4, 4}, 0)
      .expect("fc.weight", {8, 8}, "dp=2,tp=2", {"S(0)", "S(1)"}, "column");
  Seen seen = look(made);
  CHECK(seen.find("axis-dropped") == nullptr);
  CHECK(seen.find("shape-mismatch") != nullptr);
}

TEST_CASE("a whole moment gives up the rows that its pair has lost, and only these") {
  const std::vector<SavedTile> halves{{{0, 0}, {4, 2}, 0}, {{4, 0}, {4, 2}, 1}};
  Made made;
  made.tensor("model.fc.weight", {8, 2}, halves);
  made.tensor("optimizer.model.fc.weight.exp_avg", {8, 2}, halves);
  whole_by(made, "optimizer.model.fc.weight.exp_avg_sq", {4, 2}, 1);
  made.tensor("model.up.weight", {8, 2}, halves);
  made.tensor("optimizer.model.up.weight.exp_avg", {8, 2}, halves);
  made.tensor("optimizer.model.up.weight.exp_avg_sq", {8, 2}, halves);
  Seen seen = look(made, false);
  REQUIRE(seen.find("local-saved-as-global") != nullptr);
  const Finding& finding = *seen.find("local-saved-as-global");
  CHECK(finding.subjects.size() == 1);
  CHECK(seen.retained_chunks("optimizer.model.fc.weight.exp_avg_sq") == "4+4<1");
  CHECK(seen.retained_chunks("optimizer.model.fc.weight.exp_avg") == "4+4<1");
  CHECK(seen.retained_chunks("optimizer.model.up.weight.exp_avg").empty());
  CHECK(seen.number(finding, "total_lost_elements") == 16);
}

TEST_CASE("a moment of another optimizer with the same number gives up nothing") {
  const std::vector<SavedTile> halves{{{0, 0}, {4, 2}, 0}, {{4, 0}, {4, 2}, 1}};
  Made made;
  made.tensor("model.fc.weight", {8, 2}, halves);
  for (const char* optimizer : {"first_optimizer", "second_optimizer"})
    made.tensor(optimizer + std::string(".state.0.exp_avg"), {8, 2}, halves)
        .expect(optimizer + std::string(".state.0.exp_avg"), {8, 2}, "dp=2", {"S(0)"});
  whole_by(made, "first_optimizer.state.0.exp_avg_sq", {4, 2}, 1)
      .expect("first_optimizer.state.0.exp_avg_sq", {8, 2}, "dp=2", {"S(0)"});
  Seen seen = look(made);
  CHECK(seen.retained_chunks("first_optimizer.state.0.exp_avg_sq") == "4+4<1");
  CHECK(seen.retained_chunks("first_optimizer.state.0.exp_avg") == "4+4<1");
  CHECK(seen.retained_chunks("second_optimizer.state.0.exp_avg").empty());
}

TEST_CASE("a rank that saved an empty part knew the axis that is said to be left out") {
  // One row over three ranks, and a spec of three.
  for (bool with_empty : {true, false}) {
    CAPTURE(with_empty);
    Made made;
    std::vector<SavedTile> tiles{{{0, 0}, {1, 6}, 0}};
    if (with_empty) tiles.push_back({{1, 0}, {0, 6}, 2});
    made.tensor("model.w", {1, 6}, tiles);
    made.expect("model.w", {3, 6}, "tp=3", {"Shard(0)"});
    Seen seen = look(made);
    CHECK((seen.find("axis-dropped") == nullptr) == with_empty);
    CHECK((seen.find("shape-mismatch") == nullptr) != with_empty);
  }
  // Only parts of one rank, of different sizes: the last data rank has no part of either.
  Made uneven;
  uneven.tensor("model.w", {4, 2}, {{{0, 0}, {2, 2}, 0}, {{2, 0}, {2, 2}, 3}, {{4, 0}, {0, 2}, 5}});
  uneven.expect("model.w", {8, 2}, "dp=3,tp=2", {"StridedShard(0,sf=2)", "Shard(0)"});
  CHECK(look(uneven).find("axis-dropped") != nullptr);
}

TEST_CASE("a spec of another layout that loads the parameter does not say where its states are") {
  // TP cut the rows before FSDP did; the spec asks for a plain cut of the same mesh.
  const std::vector<SavedTile> strided{
      {{0, 0}, {2, 2}, 0}, {{4, 0}, {2, 2}, 1}, {{2, 0}, {2, 2}, 2}, {{6, 0}, {2, 2}, 3}};
  Made made;
  made.tensor("model.fc.weight", {8, 2}, strided)
      .tensor("optimizer.state.fc.weight.exp_avg", {8, 2}, strided);
  whole_by(made, "optimizer.state.fc.weight.exp_avg_sq", {2, 2}, 1);
  for (const char* fqn : {"model.fc.weight", "optimizer.state.fc.weight.exp_avg",
                          "optimizer.state.fc.weight.exp_avg_sq"})
    made.expect(fqn, {8, 2}, "dp=2,tp=2", {"S(0)", "S(0)"});
  Seen seen = look(made);
  REQUIRE(seen.find("local-saved-as-global") != nullptr);
  // At the chunk of the same rank, not where the spec puts that rank's rows.
  Seen without = look(made, false);
  for (Seen* one : {&seen, &without}) {
    CHECK(one->retained_chunks("optimizer.state.fc.weight.exp_avg_sq") == "4+2<1");
    CHECK(one->retained_chunks("optimizer.state.fc.weight.exp_avg") == "4+2<1");
  }
}

TEST_CASE("a state is not placed by a parameter that may be as wrongly as one of the spec does") {
  auto of = [](const std::vector<SavedTile>& known) {
    Made made;
    const std::vector<SavedTile> plain{
        {{0, 0}, {2, 2}, 0}, {{2, 0}, {2, 2}, 1}, {{4, 0}, {2, 2}, 2}, {{6, 0}, {2, 2}, 3}};
    made.tensor("model.known.weight", {8, 2}, known).tensor("model.other.weight", {8, 2}, plain);
    whole_by(made, "optimizer.state.other.weight.exp_avg", {2, 2}, 1);
    // A tensor that fits any order of axes, so that the spec's mesh counts as that of the save.
    made.tensor(
        "model.grid.weight", {4, 4},
        {{{0, 0}, {2, 2}, 0}, {{0, 2}, {2, 2}, 1}, {{2, 0}, {2, 2}, 2}, {{2, 2}, {2, 2}, 3}});
    made.expect("model.known.weight", {8, 2}, "dp=2,tp=2", {"SS(0,2)", "S(0)"});
    made.expect("model.grid.weight", {4, 4}, "dp=2,tp=2", {"S(0)", "S(1)"});
    return look(made);
  };
  Seen wrong =
      of({{{0, 0}, {2, 2}, 0}, {{2, 0}, {2, 2}, 1}, {{4, 0}, {2, 2}, 2}, {{6, 0}, {2, 2}, 3}});
  REQUIRE(wrong.find("strided-recorded-plain") != nullptr);
  REQUIRE(wrong.find("local-saved-as-global") != nullptr);
  CHECK(wrong.retained_chunks("optimizer.state.other.weight.exp_avg").empty());
  Seen right =
      of({{{0, 0}, {2, 2}, 0}, {{4, 0}, {2, 2}, 1}, {{2, 0}, {2, 2}, 2}, {{6, 0}, {2, 2}, 3}});
  REQUIRE(right.find("strided-recorded-plain") == nullptr);
  CHECK(right.retained_chunks("optimizer.state.other.weight.exp_avg") == "2+2<1");
}

TEST_CASE("a mesh of the spec that did not save the parameter does not name a replica") {
  // Saved by dp 4 and tp 2, whose ranks 2 and 3 hold the second quarter; the spec's mesh has more
  // ranks, and there rank 3 holds the first.
  Made made;
  made.tensor("model.norm.weight", {8},
              {{{0}, {2}, 0}, {{2}, {2}, 2}, {{4}, {2}, 4}, {{6}, {2}, 6}})
      .expect("model.norm.weight", {8}, "dp=4,tp=4", {"S(0)", "R"})
      .expect("optimizer.state.norm.weight.exp_avg", {8}, "dp=4,tp=4", {"S(0)", "R"});
  whole_by(made, "optimizer.state.norm.weight.exp_avg", {2}, 3);
  Seen seen = look(made);
  REQUIRE(seen.find("local-saved-as-global") != nullptr);
  CHECK(seen.retained_chunks("optimizer.state.norm.weight.exp_avg").empty());
}

namespace {

// dp 2 and tp 2; the states of a whole parameter know dp alone.
void add_short_states(Made& made, const std::vector<std::string>& kinds) {
  made.tensor("model.fc2.weight", {4, 4},
              {{{0, 0}, {2, 2}, 0}, {{0, 2}, {2, 2}, 1}, {{2, 0}, {2, 2}, 2}, {{2, 2}, {2, 2}, 3}});
  for (const std::string& kind : kinds)
    made.tensor("optimizer.state.fc2.weight." + kind, {4, 2},
                {{{0, 0}, {2, 2}, 1}, {{2, 0}, {2, 2}, 2}});
}

}  // namespace

TEST_CASE("states that lost an axis which their parameter kept are told without a spec") {
  Made made;
  add_short_states(made, {"exp_avg", "exp_avg_sq"});
  Seen seen = look(made, false);
  const Finding* finding = seen.find("axis-dropped");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kWarning);
  CHECK(finding->subjects == std::vector<std::string>{"optimizer.state.fc2.weight.exp_avg",
                                                      "optimizer.state.fc2.weight.exp_avg_sq"});
  CHECK_FALSE(finding->remedy.has_value());
}

TEST_CASE("a spec of the model alone places states that lost an axis which their parameter kept") {
  Made made;
  add_short_states(made, {"exp_avg", "exp_avg_sq"});
  made.expect("model.fc2.weight", {4, 4}, "dp=2,tp=2", {"S(0)", "S(1)"});
  Seen seen = look(made);
  const Finding* finding = seen.find("axis-dropped");
  REQUIRE(finding != nullptr);
  CHECK(finding->subjects.size() == 2);
  CHECK(seen.retained_chunks("optimizer.state.fc2.weight.exp_avg") == "0+2<1 2+2<2");
  CHECK(seen.number(*finding, "total_lost_elements") == 16);
}

TEST_CASE("projected states with tiles of their own size are not short of their parameter") {
  Made made;
  made.tensor("model.fc.weight", {16, 4}, {{{0, 0}, {8, 4}, 0}, {{8, 0}, {8, 4}, 1}})
      .tensor("optimizer.state.fc.weight.exp_avg", {4, 4},
              {{{0, 0}, {2, 4}, 0}, {{2, 0}, {2, 4}, 1}})
      .tensor("optimizer.state.fc.weight.exp_avg_sq", {4, 4},
              {{{0, 0}, {2, 4}, 0}, {{2, 0}, {2, 4}, 1}});
  CHECK(look(made, false).quiet());
}

TEST_CASE(
    "a state as large as its short parameter should be is held to the spec of the parameter") {
  const std::vector<SavedTile> plain{
      {{0, 0}, {2, 2}, 0}, {{2, 0}, {2, 2}, 1}, {{4, 0}, {2, 2}, 2}, {{6, 0}, {2, 2}, 3}};
  Made made;
  made.tensor("model.fc.weight", {4, 2}, {{{0, 0}, {2, 2}, 0}, {{2, 0}, {2, 2}, 3}})
      .expect("model.fc.weight", {8, 2}, "dp=2,tp=2", {"SS(0,2)", "S(0)"})
      .tensor("optimizer.state.fc.weight.exp_avg", {8, 2}, plain)
      .tensor("optimizer.state.fc.weight.exp_avg_sq", {8, 2}, plain);
  Seen seen = look(made);
  const Finding* finding = seen.find("strided-recorded-plain");
  REQUIRE(finding != nullptr);
  CHECK(finding->subjects.size() == 2);
}
