// The fixtures of spec/failures.md, F2.1 to F4.7 as 0.7 corrects them, built by code.
#include "core/rules/layout/made.h"

using namespace shw;

namespace {

// Halves of the model that are right, and halves of the optimizer that are not.
struct Glu {
  std::int64_t rows, columns;  // of a half
  std::vector<SavedTile> model, state;
  Extents state_shape;
};
Seen look_at_glu(const Glu& glu) {
  Made made;
  Extents half{glu.rows, glu.columns};
  for (const char* name : {"_w", "_v"})
    made.tensor(std::string("model.module.mlp.linear_fc1.weight") + name, half, glu.model);
  for (const char* kind : {"exp_avg", "exp_avg_sq"}) {
    for (const char* name : {"_w", "_v"})
      made.tensor(std::string("optimizer.state.module.module.module.mlp.linear_fc1.weight") + name +
                      "." + kind,
                  glu.state_shape, glu.state);
  }
  return look(made, false);
}
const char* const kGluW = "optimizer.state.module.module.module.mlp.linear_fc1.weight_w.exp_avg";
const char* const kGluV = "optimizer.state.module.module.module.mlp.linear_fc1.weight_v.exp_avg";

}  // namespace

TEST_CASE("F2: the rows of both halves go into W, V is lost, and the loss is counted") {
  struct Case {
    const char* name;
    Glu glu;
    const char* rows;
    std::int64_t lost, all, factor;
  };
  const Case cases[] = {
      {"F2.1",
       {4, 2, {{{0, 0}, {4, 2}, 0}}, {{{0, 0}, {2, 2}, 0}}, {2, 2}},
       "0+2<0 2+2<v0",
       8,
       16,
       2},
      {"F2.2",
       {8,
        2,
        {{{0, 0}, {4, 2}, 0}, {{4, 0}, {4, 2}, 1}},
        {{{0, 0}, {1, 2}, 0}, {{1, 0}, {1, 2}, 1}},
        {2, 2}},
       "0+1<0 1+1<v0 4+1<1 5+1<v1",
       24,
       32,
       4},
      {"F2.3",
       {4, 2, {{{0, 0}, {4, 2}, 0}}, {{{0, 0}, {1, 2}, 0}}, {1, 2}},
       "0+1<0 1+1<v0",
       12,
       16,
       4},
      {"F2.8",
       {8,
        2,
        {{{0, 0}, {4, 2}, 0}, {{4, 0}, {4, 2}, 1}},
        {{{0, 0}, {2, 2}, 0}, {{2, 0}, {2, 2}, 1}},
        {4, 2}},
       "0+2<0 2+2<v0 4+2<1 6+2<v1",
       16,
       32,
       2},
      {"F2.9",
       {12,
        2,
        {{{0, 0}, {6, 2}, 0}, {{6, 0}, {6, 2}, 1}},
        {{{0, 0}, {1, 2}, 0}, {{1, 0}, {1, 2}, 1}},
        {2, 2}},
       "0+1<0 1+1<v0 6+1<1 7+1<v1",
       40,
       48,
       6},
  };
  for (const Case& item : cases) {
    CAPTURE(item.name);
    Seen seen = look_at_glu(item.glu);
    REQUIRE_FALSE(seen.findings.empty());
    const Finding& finding = seen.findings.front();
    CHECK(finding.rule == "glu-split-local");
    CHECK(seen.retained_chunks(kGluW) == item.rows);
    CHECK(seen.retained_chunks(kGluV) == "");
    CHECK(seen.number(finding, "factor") == item.factor);
    // Both moments of Adam count.
    CHECK(seen.number(finding, "total_lost_elements") == 2 * item.lost);
    CHECK(seen.number(finding, "total_kept_elements") == 2 * (item.all - item.lost));
  }
}

TEST_CASE(
    "halves that one rank saved as plain tensors are its own rows, not those of the first owner") {
  // T=2, three owners of 8 rows: ranks 0 and 1 hold W alone, 2 and 3 its end and V's beginning.
  Made made;
  made.tensor(
          "model.module.mlp.linear_fc1.weight_w", {24, 2},
          {{{0, 0}, {8, 2}, 0}, {{12, 0}, {8, 2}, 1}, {{8, 0}, {4, 2}, 2}, {{20, 0}, {4, 2}, 3}})
      .tensor(
          "model.module.mlp.linear_fc1.weight_v", {24, 2},
          {{{0, 0}, {4, 2}, 2}, {{12, 0}, {4, 2}, 3}, {{4, 0}, {8, 2}, 4}, {{16, 0}, {8, 2}, 5}})
      .tensor(kGluW, {4, 2}, {{{0, 0}, {4, 2}, 2}})
      .tensor(kGluV, {4, 2}, {{{0, 0}, {4, 2}, 2}});
  Seen seen = look(made, false);
  CHECK(seen.find("glu-split-local") == nullptr);
  REQUIRE(seen.find("local-saved-as-global") != nullptr);
  CHECK(seen.retained_chunks(kGluW) == "8+4<2");
  CHECK(seen.retained_chunks(kGluV) == "0+4<2");
}

TEST_CASE("halves of fewer chunks than the spec has tensor-parallel ranks were not split locally") {
  Made made;
  for (const char* half : {"_w", "_v"}) {
    const std::string stem = std::string("module.mlp.linear_fc1.weight") + half;
    made.tensor("model." + stem, {8, 2}, {{{0, 0}, {4, 2}, 0}, {{4, 0}, {4, 2}, 1}})
        .expect("model." + stem, {8, 2}, "dp_cp=1,tp=2", {"StridedShard(0,sf=2)", "Shard(0)"});
    made.tensor("optimizer.state.module.module." + stem + ".exp_avg", {4, 2},
                {{{0, 0}, {4, 2}, 0}});
  }
  Seen seen = look(made);
  CHECK(seen.find("glu-split-local") == nullptr);
  REQUIRE(seen.find("local-saved-as-global") != nullptr);
  CHECK(seen.retained_chunks(kGluW) == "0+4<0");
  CHECK(seen.retained_chunks(kGluV) == "0+4<0");
}

TEST_CASE("halves that replicas of one owner wrote are one pair, by the mesh of the spec") {
  // Two replicas: each half of the states was written by another one.
  auto look_with = [](bool with_spec) {
    Made made;
    for (const char* half : {"_w", "_v"}) {
      const std::string name = std::string("model.module.mlp.linear_fc1.weight") + half;
      made.tensor(name, {4, 2}, {{{0, 0}, {4, 2}, half[1] == 'w' ? 2U : 1U}})
          .expect(name, {4, 2}, "dp_replicate=2,dp_cp=2", {"Replicate", "Shard(0)"});
    }
    made.tensor(kGluW, {2, 2}, {{{0, 0}, {2, 2}, 0}}).tensor(kGluV, {2, 2}, {{{0, 0}, {2, 2}, 2}});
    return look(made, with_spec);
  };
  Seen seen = look_with(true);
  REQUIRE(seen.find("glu-split-local") != nullptr);
  CHECK(seen.retained_chunks(kGluW) == "0+2<0 2+2<v2");
  CHECK(look_with(false).find("glu-split-local") == nullptr);
}

TEST_CASE("F2.5 and F2.6: halves that are whole, and weights without halves, are healthy") {
  Seen right = look_at_glu({4, 2, {{{0, 0}, {4, 2}, 0}}, {{{0, 0}, {4, 2}, 1}}, {4, 2}});
  CHECK(right.quiet());
  Made made;
  made.tensor("model.vision.fc1.weight", {8, 2}, {{{0, 0}, {8, 2}, 0}})
      .tensor("optimizer.state.vision.fc1.weight.exp_avg", {8, 2}, {{{0, 0}, {8, 2}, 0}});
  CHECK(look(made).quiet());
}

TEST_CASE("F3.1 and F3.2: survivors by writer, moments in pairs, masters refilled") {
  for (bool balanced : {true, false}) {
    CAPTURE(balanced);
    Made made;
    made.tensor("model.ln.weight", {8},
                {{{0}, {2}, 0}, {{2}, {2}, 1}, {{4}, {2}, 2}, {{6}, {2}, 3}});
    made.tensor(
        "model.fc.weight", {8, 2},
        {{{0, 0}, {2, 2}, 0}, {{2, 0}, {2, 2}, 1}, {{4, 0}, {2, 2}, 2}, {{6, 0}, {2, 2}, 3}});
    std::uint32_t writer = 0;
    for (const char* kind : {"exp_avg", "exp_avg_sq", "master_param"}) {
      if (balanced) ++writer;
      made.tensor(std::string("optimizer.state.0.") + kind, {2}, {{{0}, {2}, writer}});
      made.tensor(std::string("optimizer.state.1.") + kind, {2, 2}, {{{0, 0}, {2, 2}, writer}});
    }
    Seen seen = look(made, false);
    REQUIRE(seen.findings.size() == 1);
    const Finding& finding = seen.findings.front();
    CHECK(finding.rule == "local-saved-as-global");
    CHECK(finding.subjects.size() == 6);
    CHECK(seen.retained_chunks("optimizer.state.0.exp_avg") == (balanced ? "" : "0+2<0"));
    CHECK(seen.retained_chunks("optimizer.state.1.exp_avg_sq") == (balanced ? "" : "0+2<0"));
    CHECK(seen.retained_chunks("optimizer.state.1.master_param") == (balanced ? "6+2<3" : "0+2<0"));
    CHECK(seen.number(finding, "refilled_from_the_model") == 6 + 12);
    for (const Diagnosis& diagnosis : finding.diagnoses) {
      const auto& part = std::get<PartlyLost>(diagnosis);
      auto fqn = seen.checkpoint->fqn(part.tensor);
      bool of_first = fqn.find("state.0.") != std::string_view::npos;
      CHECK(part.refill_from == (!fqn.ends_with("master_param") ? ""
                                 : of_first                     ? "model.ln.weight"
                                                                : "model.fc.weight"));
    }
  }
}

TEST_CASE(
    "F3 under HSDP: the record is not in the model's order, and no other weight refills a master") {
  // Parameters 0, 1 and 2 are a, b and c; replicas shared the work, and rank 0 kept a and c.
  Made made;
  const std::vector<SavedTile> first{{{0, 0}, {2, 2}, 0}, {{2, 0}, {2, 2}, 1}},
      second{{{0, 0}, {2, 2}, 2}, {{2, 0}, {2, 2}, 3}};
  made.tensor("model.a.weight", {4, 2}, first)
      .tensor("model.c.weight", {4, 2}, first)
      .tensor("model.b.weight", {4, 2}, second);
  for (const char* index : {"0", "1", "2"})
    made.tensor(std::string("optimizer.state.") + index + ".master_param", {2, 2},
                {{{0, 0}, {2, 2}, 0}});
  Seen seen = look(made, false);
  const Finding* finding = seen.find("local-saved-as-global");
  REQUIRE(finding != nullptr);
  CHECK(finding->subjects.size() == 3);
  CHECK(seen.retained_chunks("optimizer.state.1.master_param") == "0+2<0");
  for (const Diagnosis& diagnosis : finding->diagnoses)
    CHECK(std::get<PartlyLost>(diagnosis).refill_from == "");
}

TEST_CASE("F3 under HSDP: shapes tell the parameter where one alone has them") {
  Made made;
  made.tensor("model.norm.weight", {4}, {{{0}, {2}, 0}, {{2}, {2}, 1}})
      .tensor("model.head.weight", {10, 2}, {{{0, 0}, {5, 2}, 0}, {{5, 0}, {5, 2}, 1}})
      .tensor("model.fc.weight", {6, 2}, {{{0, 0}, {3, 2}, 2}, {{3, 0}, {3, 2}, 3}});
  const std::pair<const char*, Extents> states[] = {{"0", {2}}, {"1", {3, 2}}, {"2", {5, 2}}};
  for (const auto& [index, shape] : states) {
    const SavedTile tile{Extents(shape.size(), 0), shape, 3};
    made.tensor(std::string("optimizer.state.") + index + ".master_param", shape, {tile});
  }
  made.expect("model.norm.weight", {4}, "dp_replicate=2,dp_shard=2", {"Replicate", "Shard(0)"})
      .expect("model.head.weight", {10, 2}, "dp_replicate=2,dp_shard=2", {"Replicate", "Shard(0)"})
      .expect("model.fc.weight", {6, 2}, "dp_replicate=2,dp_shard=2", {"Replicate", "Shard(0)"});
  Seen seen = look(made);
  const Finding* finding = seen.find("local-saved-as-global");
  REQUIRE(finding != nullptr);
  CHECK(seen.retained_chunks("optimizer.state.0.master_param") == "2+2<3");
  CHECK(seen.retained_chunks("optimizer.state.1.master_param") == "3+3<3");
  CHECK(seen.retained_chunks("optimizer.state.2.master_param") == "5+5<3");
  for (const Diagnosis& diagnosis : finding->diagnoses) {
    const auto& part = std::get<PartlyLost>(diagnosis);
    const auto fqn = seen.checkpoint->fqn(part.tensor);
    CHECK(part.refill_from == (fqn.find(".0.") != std::string_view::npos   ? "model.norm.weight"
                               : fqn.find(".1.") != std::string_view::npos ? "model.fc.weight"
                                                                           : "model.head.weight"));
  }
}

TEST_CASE(
    "F3 under HSDP: an empty moment next to one with elements is told without its parameter") {
  for (bool is_healthy : {false, true}) {
    Made made;
    made.tensor("model.fc.weight", {6, 2}, {{{0, 0}, {2, 2}, 0}, {{2, 0}, {2, 2}, 4}})
        .tensor("model.fc2.weight", {4, 2}, {{{0, 0}, {2, 2}, 1}, {{2, 0}, {2, 2}, 3}})
        .tensor("optimizer.state.0.exp_avg", {2, 2}, {{{0, 0}, {2, 2}, 4}})
        .tensor("optimizer.state.0.exp_avg_sq", {2, 2}, {{{0, 0}, {2, 2}, 1}})
        .tensor("optimizer.state.1.exp_avg", {2, 2}, {{{0, 0}, {2, 2}, 1}});
    const Extents other{is_healthy ? 2 : 0, 2};
    made.tensor("optimizer.state.1.exp_avg_sq", other, {{{0, 0}, other, 5}});
    Seen seen = look(made, false);
    const Finding* finding = seen.find("local-saved-as-global");
    CHECK((finding == nullptr) == is_healthy);
    if (finding == nullptr) continue;
    CHECK(finding->severity == Severity::kError);
    CHECK(finding->subjects ==
          std::vector<std::string>{"optimizer.state.1.exp_avg_sq", "optimizer.state.1.exp_avg"});
    CHECK(finding->diagnoses.empty());
  }
}

TEST_CASE("F3.3 and F3.7: an uneven survivor has its place, an empty one none") {
  Made made;
  std::vector<SavedTile> cut{
      {{0, 0}, {3, 2}, 0}, {{3, 0}, {3, 2}, 1}, {{6, 0}, {3, 2}, 2}, {{9, 0}, {1, 2}, 3}};
  made.tensor("model.odd.weight", {10, 2}, cut)
      .tensor("model.tiny.weight", {2, 2}, {{{0, 0}, {1, 2}, 0}, {{1, 0}, {1, 2}, 1}})
      .tensor("optimizer.state.odd.weight.momentum_buffer", {1, 2}, {{{0, 0}, {1, 2}, 3}})
      .tensor("optimizer.state.tiny.weight.momentum_buffer", {0, 2}, {{{0, 0}, {0, 2}, 2}});
  Seen seen = look(made, false);
  REQUIRE(seen.find("local-saved-as-global") != nullptr);
  CHECK(seen.find("local-saved-as-global")->subjects.size() == 2);
  CHECK(seen.retained_chunks("optimizer.state.odd.weight.momentum_buffer") == "9+1<3");
  CHECK(seen.retained_chunks("optimizer.state.tiny.weight.momentum_buffer") == "");
}

TEST_CASE("F3.5 and F3.6: right states and factored ones are healthy") {
  std::vector<SavedTile> cut{{{0, 0}, {4, 4}, 0}, {{4, 0}, {4, 4}, 1}};
  Made made;
  made.tensor("model.a.weight", {8, 4}, cut)
      .tensor("optimizer.state.a.weight.exp_avg", {8, 4}, cut)
      .tensor("optimizer.state.a.weight.exp_avg_sq_row", {8}, {{{0}, {8}, 0}})
      .tensor("optimizer.state.a.weight.exp_avg_sq_col", {4}, {{{0}, {4}, 1}})
      .tensor("optimizer.state.a.weight.scale", {8, 1}, {{{0, 0}, {8, 1}, 1}})
      .tensor("optimizer.state.a.weight.step", {1}, {{{0}, {1}, 1}});
  CHECK(look(made, false).quiet());
}

TEST_CASE("a state that the spec expects as small as it is says nothing of its parameter") {
  for (bool with_spec : {true, false}) {
    Made made;
    made.tensor("model.a.weight", {8, 4}, {{{0, 0}, {4, 4}, 0}, {{4, 0}, {4, 4}, 1}})
        .tensor("optimizer.state.a.weight.exp_avg", {4, 4}, {{{0, 0}, {4, 4}, 1}})
        .expect("model.a.weight", {8, 4})
        .expect("optimizer.state.a.weight.exp_avg", {4, 4});
    CHECK(look(made, with_spec).quiet() == with_spec);
  }
}

TEST_CASE("with replicas the survivor's place is asked for, and a mesh that is given decides") {
  auto make = [](Made& made) {
    // dp_replicate 2 x dp_shard 2: rank 3 is a replica of rank 1 and wrote no chunk of the model.
    made.tensor("model.a.weight", {8, 2}, {{{0, 0}, {4, 2}, 0}, {{4, 0}, {4, 2}, 1}})
        .tensor("optimizer.state.a.weight.momentum_buffer", {4, 2}, {{{0, 0}, {4, 2}, 3}});
  };
  Made first;
  make(first);
  Seen asked = look(first, false);
  const Finding* finding = asked.find("local-saved-as-global");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kError);
  CHECK(finding->diagnoses.empty());
  CHECK_FALSE(finding->remedy.has_value());
  Made second;
  make(second);
  Seen given = look(second, false, "dp_replicate=2,dp_shard=2");
  CHECK(given.retained_chunks("optimizer.state.a.weight.momentum_buffer") == "4+4<3");
}

TEST_CASE("F4.1: one expert rank survives for each key, in the order that the spec asks for") {
  Made made;
  for (std::uint32_t i = 0; i < 2; ++i) {
    std::string name = "model.layers.3.mlp.experts.fc1.weight" + std::to_string(i);
    made.tensor(name, {2, 1}, {{{0, 0}, {2, 1}, i}})
        .expect(name, {4, 1}, "edp=1,ep=2", {"Shard(0)", "Shard(0)"}, "expert");
  }
  Seen seen = look(made);
  REQUIRE(seen.findings.size() == 2);
  CHECK(seen.findings[0].rule == "axis-dropped");
  CHECK(seen.number(seen.findings[0], "factor") == 2);
  CHECK(seen.number(seen.findings[0], "total_lost_elements") == 4);
  CHECK(seen.findings[1].rule == "writer-mosaic");
  CHECK(seen.retained_chunks("model.layers.3.mlp.experts.fc1.weight0") == "0+2<0");
  CHECK(seen.retained_chunks("model.layers.3.mlp.experts.fc1.weight1") == "2+2<1");
}

TEST_CASE("F4.2: the row order is the spec's, plain or expert-major") {
  struct Case {
    std::vector<std::string_view> placements;
    const char *first, *second;
  };
  const Case cases[] = {
      {{"Shard(0)", "Shard(0)"}, "0+1<0 2+1<2", "1+1<1 3+1<3"},
      {{"StridedShard(0, sf=2)", "Shard(0)"}, "0+1<0 1+1<2", "2+1<1 3+1<3"},
  };
  for (const Case& item : cases) {
    Made made;
    for (std::uint32_t i = 0; i < 2; ++i) {
      std::string name = "experts.fc1.weight" + std::to_string(i);
      made.tensor(name, {2, 1}, {{{0, 0}, {1, 1}, i}, {{1, 0}, {1, 1}, i + 2}})
          .expect(name, {4, 1}, "edp=2,ep=2", item.placements, "expert");
    }
    Seen seen = look(made);
    CHECK(seen.findings.front().rule == "axis-dropped");
    CHECK(seen.retained_chunks("experts.fc1.weight0") == item.first);
    CHECK(seen.retained_chunks("experts.fc1.weight1") == item.second);
  }
}

TEST_CASE("F4.2 c and F4.3: another order is permuted, another topology is reported") {
  auto post_fix = [](Made& made, std::int64_t edp) {
    std::vector<SavedTile> tiles;
    for (std::int64_t r = 0; r < 2 * edp; ++r)
      tiles.push_back({{r, 0}, {1, 1}, static_cast<std::uint32_t>(r)});
    made.tensor("experts.fc1.weight0", {2 * edp, 1}, tiles);
  };
  Made same;
  post_fix(same, 2);
  same.expect("experts.fc1.weight0", {4, 1}, "edp=2,ep=2", {"Shard(0)", "Shard(0)"}, "expert");
  CHECK(look(same).quiet());

  Made other;
  post_fix(other, 4);
  other.expect("experts.fc1.weight0", {8, 1}, "edp=4,ep=2", {"SS(0,2)", "S(0)"}, "expert");
  Seen seen = look(other);
  CHECK(seen.findings.front().severity == Severity::kWarning);
  CHECK(order_of(seen, "topology-locked") == std::vector<std::int64_t>{0, 2, 4, 6, 1, 3, 5, 7});

  Made locked;
  post_fix(locked, 4);
  locked.expect("experts.fc1.weight0", {8, 1}, "edp=2,ep=2", {"S(0)", "S(0)"}, "expert");
  REQUIRE(look(locked).find("topology-locked") != nullptr);
}

TEST_CASE("F4.4: chunks that are larger than what their ranks hold are named, not placed") {
  Made made;
  made.tensor("experts.fc1.weight0", {4, 1}, {{{0, 0}, {2, 1}, 2}, {{2, 0}, {2, 1}, 3}})
      .expect("experts.fc1.weight0", {8, 1}, "edp=4,ep=2", {"S(0)", "S(0)"}, "expert");
  Seen seen = look(made);
  REQUIRE_FALSE(seen.findings.empty());
  CHECK(seen.findings.front().rule == "axis-dropped");
  CHECK(seen.findings.front().diagnoses.empty());
}

TEST_CASE(
    "half of what a spec of a larger model expects is not a dropped axis where all ranks wrote") {
  // If ranks that differ along the axis wrote different boxes, their mesh is complete.
  Made one;
  one.tensor("model.a.bias", {10}, {{{0}, {5}, 0}, {{5}, {5}, 1}})
      .expect("model.a.bias", {20}, "dp=2", {"S(0)"});
  Made two;
  std::vector<SavedTile> tiles;
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    tiles.push_back({{rank % 2 * 4 + rank / 2 * 2, 0}, {2, 3}, rank});
  two.tensor("model.a.weight", {8, 3}, tiles)
      .expect("model.a.weight", {16, 3}, "dp=2,tp=2", {"SS(0,2)", "S(0)"}, "column");
  for (Made* made : {&one, &two}) {
    Seen seen = look(*made);
    REQUIRE(seen.find("shape-mismatch") != nullptr);
    CHECK(seen.find("axis-dropped") == nullptr);
    CHECK(seen.find("shape-mismatch")->diagnoses.empty());
  }
}

TEST_CASE("F4.5 to F4.7: one expert rank, replicas by many writers, and no chunk of empty ranks") {
  Made made;
  made.tensor("experts.fc1.weight0", {2, 1}, {{{0, 0}, {1, 1}, 0}, {{1, 0}, {1, 1}, 1}})
      .expect("experts.fc1.weight0", {2, 1}, "edp=2,ep=1", {"S(0)", "S(0)"}, "expert")
      .tensor("norm.weight", {4}, {{{0}, {2}, 1}, {{2}, {2}, 0}})
      .expect("norm.weight", {4}, "edp=2,ep=1", {"R", "R"})
      .tensor("hc_head.scale", {1}, {{{0}, {1}, 0}})
      .expect("hc_head.scale", {1}, "edp=2,ep=1", {"S(0)", "R"});
  CHECK(look(made).quiet());
}
