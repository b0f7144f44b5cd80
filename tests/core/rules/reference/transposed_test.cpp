// Transposed tensors, tensors that only look transposed, and undecidable ones.
#include <doctest/doctest.h>

#include <random>

#include "core/facts/in_pieces.h"
#include "core/facts/reference/transposed_constraint.h"
#include "core/rules/reference/against_support.h"

using namespace shw;

namespace {

Extents crossed(Extents shape) {
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return shape;
}

// Every matrix transposed, element by element.
Values transposed(const Values& values, const Extents& shape) {
  Extents other = crossed(shape);
  Values out(values.size());
  each(shape, [&](const Extents& at) { out[flat(crossed(at), other)] = values[flat(at, shape)]; });
  return out;
}

Values noise(const Extents& shape, unsigned seed, std::int64_t reach = 1000) {
  std::mt19937 dice(seed);
  Values out(static_cast<std::size_t>(*volume(shape)));
  auto width = static_cast<std::uint64_t>(2 * reach + 1);
  for (std::int64_t& value : out) value = static_cast<std::int64_t>(dice() % width) - reach;
  return out;
}

// Values after some training: mostly the old numbers.
Values trained_on(Values values, unsigned seed) {
  Values change = noise({static_cast<std::int64_t>(values.size())}, seed, 300);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += change[i];
  return values;
}

struct Pair {
  TemporaryFolder folder;
  std::string bad = folder / "bad", good = folder / "good", out = folder / "out";
  void write(const std::vector<MadeTensor>& saved, const std::vector<MadeTensor>& truth) {
    write_checkpoint(bad, saved);
    write_checkpoint(good, truth);
  }
};

bool says_undecided(const Finding& finding) {
  return finding.diagnoses.empty() && finding.cause.find("ndecided") != std::string::npos;
}

}  // namespace

TEST_CASE("a transposed weight is found by its bytes, repaired, and the repaired one is clean") {
  for (Extents shape : {Extents{6, 6}, Extents{6, 4}, Extents{7, 5}, Extents{3, 4, 4},
                        Extents{3, 4, 5}, Extents{1, 9}, Extents{2, 2, 3, 3}}) {
    CAPTURE(to_text(shape));
    Pair pair;
    Values truth = noise(shape, 1), norm = noise({6}, 2);
    MadeTensor beside = cut_in_rows("norm.weight", {6}, norm, 2);
    pair.write({cut_in_rows("o_proj.weight", crossed(shape), transposed(truth, shape), 3), beside},
               {cut_in_rows("o_proj.weight", shape, truth, 2), beside});
    for (Depth depth : {Depth::kHeaders, Depth::kData}) {
      CheckReport report = held_against(pair.bad, pair.good, depth);
      const Finding* finding = first_of(report, "transposed");
      REQUIRE(finding != nullptr);
      CHECK(finding->severity == Severity::kError);
      CHECK(finding->subjects == std::vector<std::string>{"o_proj.weight"});
      REQUIRE(finding->remedy.has_value());
      CHECK(finding->remedy->kind == "transpose");
      CHECK(finding->remedy->lossless);
      CHECK(finding->diagnoses.size() == 1);
      CHECK(count_above_info(report) == 1);
    }
    CheckReport report = held_against(pair.bad, pair.good);
    std::string out = repaired_into(pair.bad, report, pair.out);
    CHECK(values_of(*opened(out), "o_proj.weight") == truth);
    CHECK(values_of(*opened(out), "norm.weight") == norm);
    CheckReport again = held_against(out, pair.good, Depth::kData);
    CHECK(count_above_info(again) == 0);
    CHECK(plan_for(out, again).empty());
  }
}

TEST_CASE("what equals its own transpose, or is not a transpose, is not a finding") {
  Extents square{8, 8};
  Values identity(64, 0), symmetric(64), ones(64, 1);
  for (std::size_t i = 0; i < 8; ++i) {
    identity[9 * i] = 1;
    for (std::size_t j = 0; j < 8; ++j)
      symmetric[8 * i + j] = static_cast<std::int64_t>(i * j + i + j);
  }
  Values embedding = noise({12, 8}, 3);
  std::vector<MadeTensor> healthy = {cut_in_rows("a.identity", square, identity, 2),
                                     cut_in_rows("b.symmetric", square, symmetric, 2),
                                     cut_in_rows("c.norm.weight", {8}, Values(8, 1), 2),
                                     cut_in_rows("d.ones", square, ones, 2),
                                     cut_in_rows("e.zeros", square, Values(64, 0), 2),
                                     cut_in_rows("embed_tokens.weight", {12, 8}, embedding, 2),
                                     cut_in_rows("lm_head.weight", {12, 8}, embedding, 2),
                                     cut_in_rows("q_proj.weight", {64, 64}, noise({64, 64}, 4), 2)};
  std::vector<MadeTensor> resharded, later, other_model;
  for (MadeTensor tensor : healthy) {
    Values values;
    for (const MadeChunk& chunk : tensor.chunks)
      values.insert(values.end(), chunk.values.begin(), chunk.values.end());
    resharded.push_back(cut_in_rows(tensor.fqn, tensor.shape, values, 3));
    later.push_back(cut_in_rows(tensor.fqn, tensor.shape, trained_on(values, 5), 2));
    other_model.push_back(cut_in_rows(tensor.fqn, tensor.shape, noise(tensor.shape, 6), 2));
  }
  for (const auto& reference : {healthy, resharded, later, other_model}) {
    Pair pair;
    pair.write(healthy, reference);
    for (Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
      CheckReport report = held_against(pair.bad, pair.good, depth);
      CHECK(first_of(report, "transposed") == nullptr);
    }
  }
}

TEST_CASE(
    "after more training the cosine tells, matrix by matrix, where there are enough numbers") {
  for (Extents shape : {Extents{40, 40}, Extents{48, 32}, Extents{3, 36, 36}, Extents{2, 40, 30},
                        Extents{12, 12}, Extents{2, 20, 15}}) {
    CAPTURE(to_text(shape));
    Pair pair;
    Values truth = noise(shape, 7), later = trained_on(truth, 8);
    pair.write({cut_in_rows("w", crossed(shape), transposed(later, shape), 2)},
               {cut_in_rows("w", shape, truth, 2)});
    CheckReport report = held_against(pair.bad, pair.good);
    const Finding* finding = first_of(report, "transposed");
    REQUIRE(finding != nullptr);
    CHECK(finding->cause.find("cosine") != std::string::npos);
    std::string out = repaired_into(pair.bad, report, pair.out);
    CHECK(values_of(*opened(out), "w") == later);
    CHECK(count_above_info(held_against(out, pair.good, Depth::kData)) == 0);
  }
  // Too few elements to decide, right or wrong.
  Pair pair;
  Extents small{8, 8};
  Values truth = noise(small, 9);
  pair.write({cut_in_rows("w", small, transposed(trained_on(truth, 10), small), 2)},
             {cut_in_rows("w", small, truth, 2)});
  CHECK(first_of(held_against(pair.bad, pair.good), "transposed") == nullptr);
}

TEST_CASE("some experts transposed and others not: said, and left alone") {
  Extents shape{2, 40, 40};
  Pair pair;
  Values truth = noise(shape, 11), turned = transposed(truth, shape), mixed = truth;
  std::copy_n(turned.begin(), 1600, mixed.begin());
  pair.write({cut_in_rows("experts.w1", shape, mixed, 2)},
             {cut_in_rows("experts.w1", shape, truth, 1)});
  CheckReport report = held_against(pair.bad, pair.good);
  const Finding* finding = first_of(report, "transposed");
  REQUIRE(finding != nullptr);
  CHECK(says_undecided(*finding));
  CHECK(plan_for(pair.bad, report).empty());
}

TEST_CASE("the reference's bytes under the exchanged shape are a view, not a transpose") {
  Extents shape{6, 4};
  Pair pair;
  Values truth = noise(shape, 12);
  pair.write({cut_in_rows("w", {4, 6}, truth, 2)}, {cut_in_rows("w", shape, truth, 2)});
  CheckReport report = held_against(pair.bad, pair.good);
  const Finding* finding = first_of(report, "transposed");
  REQUIRE(finding != nullptr);
  CHECK(finding->cause.find("view") != std::string::npos);
  CHECK(finding->diagnoses.empty());
  CHECK(plan_for(pair.bad, report).empty());
}

TEST_CASE("with the expected shape alone only a single row or column is decided") {
  auto with_spec = [](const std::string& path, const Extents& expected) {
    auto spec = std::make_shared<Spec>();
    spec->entries.emplace("w", SpecEntry{});
    spec->entries.begin()->second.shape = expected;
    CheckOptions options;
    options.spec = spec;
    auto report = check(*opened(path), options);
    REQUIRE(report.has_value());
    return std::move(*report);
  };
  TemporaryFolder folder;
  Extents saved{7, 5};
  write_checkpoint(folder / "plain", {cut_in_rows("w", saved, noise(saved, 13), 2)});
  CheckReport report = with_spec(folder / "plain", {5, 7});
  const Finding* finding = first_of(report, "transposed");
  REQUIRE(finding != nullptr);
  CHECK(says_undecided(*finding));
  CHECK(finding->cause.find("--against") != std::string::npos);
  CHECK(first_of(report, "shape-mismatch") == nullptr);
  CHECK(finding->consequence == Consequence::kWillNotLoad);
  CHECK(plan_for(folder / "plain", report).empty());
  CHECK(first_of(with_spec(folder / "plain", saved), "transposed") == nullptr);
  CHECK(first_of(with_spec(folder / "plain", {35, 1}), "transposed") == nullptr);

  Extents column{9, 1};
  Values values = noise(column, 14);
  write_checkpoint(folder / "column", {cut_in_rows("w", column, values, 1)});
  report = with_spec(folder / "column", {1, 9});
  std::string out = repaired_into(folder / "column", report, folder / "out");
  CHECK(values_of(*opened(out), "w") == values);
  CHECK(opened(out)->shape(TensorId{0})[1] == 9);
}

TEST_CASE("a placement on the wrong axis is tried before a transpose") {
  // [2, 4, 8] is [2, 8, 4] transposed; two shards of [2, 8, 2] stacked along dim 1 are not.
  Extents expected{2, 3, 12};
  Values truth = noise(expected, 15);
  MadeTensor saved{"experts.down_proj.weight", {2, 12, 3}, {}};
  for (std::int64_t s = 0; s < 4; ++s) {
    Box box{{0, 0, 3 * s}, {2, 3, 3}};
    saved.chunks.push_back({Box{{0, 3 * s, 0}, {2, 3, 3}},
                            {2, 3, 3},
                            cut_out(truth, expected, box),
                            static_cast<std::uint32_t>(s)});
  }
  Pair pair;
  pair.write({saved}, {cut_in_rows("experts.down_proj.weight", expected, truth, 2)});
  // The bytes show that it is not transposed; by the shapes alone it would be a tie.
  CheckReport report = held_against(pair.bad, pair.good);
  const Finding* finding = first_of(report, "transposed");
  CHECK((finding == nullptr || finding->diagnoses.empty()));
  report = held_against(pair.bad, pair.good, Depth::kMetadata);
  CHECK(first_of(report, "transposed") == nullptr);
}

TEST_CASE("states are transposed where the reference says so, and else left and named") {
  Extents shape{6, 5};
  Values weight = noise(shape, 16), moment = noise(shape, 17), second = noise(shape, 18);
  auto saved = [&](const std::string& fqn, const Values& values, bool turned) {
    return turned ? cut_in_rows(fqn, crossed(shape), transposed(values, shape), 2)
                  : cut_in_rows(fqn, shape, values, 2);
  };
  std::vector<MadeTensor> all = {saved("model.w", weight, true),
                                 saved("optim.state.w.exp_avg", moment, true),
                                 saved("optim.state.w.exp_avg_sq", second, false)};
  Pair pair;
  pair.write(all, {saved("model.w", weight, false), saved("optim.state.w.exp_avg", moment, false),
                   saved("optim.state.w.exp_avg_sq", second, false)});
  CheckReport report = held_against(pair.bad, pair.good);
  const Finding* finding = first_of(report, "transposed");
  REQUIRE(finding != nullptr);
  CHECK(finding->subjects.size() == 2);
  auto repaired = opened(repaired_into(pair.bad, report, pair.out));
  CHECK(values_of(*repaired, "model.w") == weight);
  CHECK(values_of(*repaired, "optim.state.w.exp_avg") == moment);
  CHECK(values_of(*repaired, "optim.state.w.exp_avg_sq") == second);

  // An export without states: the state of the saved shape stays, which is reported.
  write_checkpoint(pair.folder / "export", {saved("model.w", weight, false)});
  report = held_against(pair.bad, pair.folder / "export");
  finding = first_of(report, "transposed");
  REQUIRE(finding != nullptr);
  CHECK(finding->subjects == std::vector<std::string>{"model.w"});
  REQUIRE(finding->remedy.has_value());
  CHECK(finding->remedy->text.find("optim.state.w.exp_avg is left as saved") != std::string::npos);
}

TEST_CASE("the law is the two cosines, as a plain loop has them, sampled where large") {
  Extents shape{2100, 2100};
  std::mt19937 dice(23);
  auto values = [&](const Values& numbers) {
    return test::in_pieces(Dtype::kFloat32, shape, floats(numbers), dice);
  };
  Values truth = noise(shape, 19);
  OrientationFound found =
      *find_orientation(values(transposed(trained_on(truth, 20), shape)), values(truth));
  CHECK(found.orientation == Orientation::kSwappedDims);
  CHECK_FALSE(found.exact);
  CHECK(found.sampled);
  CHECK(found.compared <= std::int64_t{1} << 22);
  CHECK(found.margin > 0.8);
  CHECK(find_orientation(values(trained_on(truth, 21)), values(truth))->orientation ==
        Orientation::kUnrelated);
  CHECK(find_orientation(values(noise(shape, 22)), values(truth))->orientation ==
        Orientation::kUnrelated);
}
