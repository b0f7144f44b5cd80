// Tiles at each other's places, compared with a reference that has them right.
#include <numeric>
#include <random>

#include "core/facts/reference/match.h"
#include "core/facts/reference/tile_jigsaw.h"
#include "core/repair/against_source.h"
#include "core/rules/make_contents.h"
#include "core/rules/reference/against_support.h"

using namespace shw;
using namespace shw::test;

namespace {

// Split positions by dim: 0, ..., shape[d].
using Cuts = std::vector<std::vector<std::int64_t>>;

std::vector<Box> boxes_of(const Cuts& cuts) {
  Extents counts;
  for (const auto& at : cuts) counts.push_back(static_cast<std::int64_t>(at.size()) - 1);
  std::vector<Box> boxes;
  each(counts, [&](const Extents& cell) {
    Box box;
    for (std::size_t d = 0; d < cuts.size(); ++d) {
      auto i = static_cast<std::size_t>(cell[d]);
      box.offsets.push_back(cuts[d][i]);
      box.sizes.push_back(cuts[d][i + 1] - cuts[d][i]);
    }
    boxes.push_back(std::move(box));
  });
  return boxes;
}

// Tile i is recorded at `recorded[i]` and has the content of `truth` at `held[i]`.
MadeTensor tiled(const std::string& fqn, const Extents& shape, const Values& truth,
                 const std::vector<Box>& recorded, const std::vector<Box>& held) {
  MadeTensor tensor{fqn, shape, {}};
  for (std::size_t i = 0; i < recorded.size(); ++i)
    tensor.chunks.push_back({recorded[i], held[i].sizes, cut_out(truth, shape, held[i]),
                             static_cast<std::uint32_t>(i)});
  return tensor;
}

struct ExchangeCase {
  std::string name, family;
  Extents shape;
  std::vector<Box> recorded, held;
};

std::vector<Box> reordered(const std::vector<Box>& boxes, const std::vector<std::size_t>& order) {
  std::vector<Box> out;
  for (std::size_t i : order) out.push_back(boxes[i]);
  return out;
}

std::vector<ExchangeCase> cases() {
  std::vector<ExchangeCase> out;
  std::vector<Box> grid = boxes_of({{0, 4, 8}, {0, 3, 6}});
  out.push_back({"two of a grid", "two-tiles", {8, 6}, grid, reordered(grid, {0, 2, 1, 3})});
  std::vector<Box> square = boxes_of({{0, 2, 4, 6}, {0, 4, 8, 12}});
  out.push_back({"a mesh transposed",
                 "grid-transposed",
                 {6, 12},
                 square,
                 reordered(square, {0, 3, 6, 1, 4, 7, 2, 5, 8})});
  std::vector<Box> oblong = boxes_of({{0, 2, 4}, {0, 4, 8, 12, 16}});
  out.push_back({"a mesh counted the other way",
                 "axes-transposed",
                 {4, 16},
                 oblong,
                 reordered(oblong, {0, 2, 4, 6, 1, 3, 5, 7})});
  std::vector<Box> cube = boxes_of({{0, 2, 4}, {0, 2, 4}, {0, 3, 6, 9}});
  out.push_back({"any order in three dims",
                 "unknown",
                 {4, 4, 9},
                 cube,
                 reordered(cube, {7, 0, 2, 1, 11, 5, 6, 9, 8, 3, 10, 4})});
  std::vector<Box> line = boxes_of({{0, 2, 4, 6, 8, 10}});
  out.push_back({"in reverse", "reversed", {10}, line, reordered(line, {4, 3, 2, 1, 0})});
  out.push_back({"one further", "rotated", {10}, line, reordered(line, {4, 0, 1, 2, 3})});
  std::vector<Box> few = boxes_of({{0, 1, 2}});
  out.push_back({"two elements", "two-tiles", {2}, few, reordered(few, {1, 0})});
  // 3 + 3 + 3 + 1 rows, with two tiles of equal size exchanged.
  std::vector<Box> uneven = boxes_of({{0, 3, 6, 9, 10}, {0, 2}});
  out.push_back(
      {"equal ones of uneven", "two-tiles", {10, 2}, uneven, reordered(uneven, {1, 0, 2, 3})});
  // The last rank's single row first, and all others after it.
  std::vector<Box> shifted = boxes_of({{0, 1, 4, 7, 10}, {0, 2}});
  out.push_back(
      {"uneven in another order", "unknown", {10, 2}, shifted, reordered(uneven, {3, 0, 1, 2})});
  // The offsets of the first and the last tile exchanged: beyond the end, and a gap.
  std::vector<Box> torn = uneven;
  std::swap(torn[0].offsets, torn[3].offsets);
  out.push_back({"offsets exchanged", "two-tiles", {10, 2}, torn, uneven});
  return out;
}

std::string text_of(const Finding& finding, const std::string& key) {
  return test::evidence<std::string>(finding, key);
}

// Checks that the repaired tensor equals the reference and that its certificate is proved.
void check_repair(const TemporaryFolder& folder, const CheckReport& report, const std::string& fqn,
                  const Values& truth) {
  std::string out = repaired_into(folder / "bad", report, folder / "out");
  CHECK(values_of(*opened(out), fqn) == truth);
  auto verified = verified_against(out, *opened(folder / "bad"));
  REQUIRE(verified.has_value());
  CHECK(verified->outcome == VerifyReport::Outcome::kProved);
  CHECK(count_above_info(held_against(out, folder / "good", Depth::kData)) == 0);
}

}  // namespace

TEST_CASE("tiles that exchanged places are named and a relabel gives the reference back") {
  for (const ExchangeCase& one : cases()) {
    for (Depth depth : {Depth::kHeaders, Depth::kData}) {
      CAPTURE(one.name);
      TemporaryFolder folder;
      Values truth = counting(one.shape);
      for (std::int64_t& value : truth) ++value;
      write_checkpoint(folder / "good", {tiled("model.w", one.shape, truth, {whole(one.shape)},
                                               {whole(one.shape)})});
      write_checkpoint(folder / "bad",
                       {tiled("model.w", one.shape, truth, one.recorded, one.held)});
      CheckReport report = held_against(folder / "bad", folder / "good", depth);
      const Finding* finding = first_of(report, "tiles-exchanged");
      if (finding == nullptr) finding = first_of(report, "blocks-permuted");
      REQUIRE(finding != nullptr);
      CHECK(text_of(*finding, "family") == one.family);
      CHECK(finding->severity == Severity::kError);
      REQUIRE(finding->remedy.has_value());
      CHECK(finding->remedy->lossless);
      CHECK(count_above_info(report) == 1);
      check_repair(folder, report, "model.w", truth);
    }
  }
}

TEST_CASE("tiles that hold the same stay and zeros accuse nobody") {
  TemporaryFolder folder;
  std::vector<Box> line = boxes_of({{0, 2, 4, 6, 8, 10, 12}});
  Extents shape{12};
  Values truth{0, 0, 5, 6, 0, 0, 7, 8, 5, 6, 9, 1};  // tiles 0 and 2 are equal, and 1 and 4
  write_checkpoint(folder / "good", {tiled("w", shape, truth, line, line)});
  // Tiles 1 and 3 changed places; tile 4 still has the content of tile 1.
  write_checkpoint(folder / "bad",
                   {tiled("w", shape, truth, line, reordered(line, {2, 3, 0, 1, 4, 5}))});
  CheckReport report = held_against(folder / "bad", folder / "good");
  const Finding* finding = first_of(report, "tiles-exchanged");
  REQUIRE(finding != nullptr);
  CHECK(test::evidence<std::int64_t>(*finding, "tiles_that_moved") == 2);
  check_repair(folder, report, "w", truth);
}

TEST_CASE("a tile that is a copy of another is said to be one and nothing is repaired") {
  TemporaryFolder folder;
  std::vector<Box> grid = boxes_of({{0, 4, 8}, {0, 3, 6}});
  Extents shape{8, 6};
  Values truth = counting(shape);
  write_checkpoint(folder / "good", {tiled("w", shape, truth, grid, grid)});
  write_checkpoint(folder / "bad", {tiled("w", shape, truth, grid, reordered(grid, {0, 0, 2, 3}))});
  CheckReport report = held_against(folder / "bad", folder / "good");
  const Finding* finding = first_of(report, "tiles-exchanged");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kError);
  CHECK_FALSE(finding->remedy.has_value());
  CHECK(finding->diagnoses.empty());
  CHECK(test::evidence<std::int64_t>(*finding, "second_copies") == 1);
  CHECK(first_of(report, "differs-from-reference") == nullptr);
}

TEST_CASE("few values at other places are not proof unless the rest is of the same step") {
  for (bool same_step : {true, false}) {
    TemporaryFolder folder;
    std::vector<Box> two = boxes_of({{0, 1, 2}});
    Values flags{0, 1};
    Extents shape{4, 4};
    Values other = counting(shape), later = other;
    for (std::int64_t& value : later) value = 100 - value * value;
    write_checkpoint(folder / "good",
                     {tiled("flag", {2}, flags, two, two), cut_in_rows("w", shape, other, 2)});
    write_checkpoint(folder / "bad", {tiled("flag", {2}, flags, two, reordered(two, {1, 0})),
                                      cut_in_rows("w", shape, same_step ? other : later, 2)});
    CheckReport report = held_against(folder / "bad", folder / "good");
    CHECK((first_of(report, "tiles-exchanged") != nullptr) == same_step);
    CHECK((first_of(report, "differs-from-reference") != nullptr) == !same_step);
  }
}

TEST_CASE("states follow where the reference has them and are named where it has not") {
  std::vector<Box> grid = boxes_of({{0, 2, 4}, {0, 3, 6}});
  std::vector<Box> moved = reordered(grid, {3, 1, 2, 0});
  Extents shape{4, 6};
  Values weight = counting(shape), mean = weight;
  for (std::int64_t& value : mean) value += 1000;
  for (bool with_states : {true, false}) {
    TemporaryFolder folder;
    std::vector<MadeTensor> good{tiled("model.w", shape, weight, grid, grid)};
    if (with_states) good.push_back(tiled("optimizer.state.w.exp_avg", shape, mean, grid, grid));
    write_checkpoint(folder / "good", good);
    write_checkpoint(folder / "bad",
                     {tiled("model.w", shape, weight, grid, moved),
                      tiled("optimizer.state.w.exp_avg", shape, mean, grid, moved)});
    CheckReport report = held_against(folder / "bad", folder / "good");
    const Finding* finding = first_of(report, "tiles-exchanged");
    REQUIRE(finding != nullptr);
    CHECK(finding->diagnoses.size() == (with_states ? 2 : 1));
    bool named =
        finding->remedy->text.find("optimizer.state.w.exp_avg is left") != std::string::npos;
    CHECK(named == !with_states);
  }
}

TEST_CASE("tiles are found in a reference of another precision, to which they are rounded") {
  for (bool narrow : {true, false}) {
    TemporaryFolder folder;
    test::Numbers numbers = test::distinct(24), exchanged = numbers;
    std::rotate(exchanged.begin(), exchanged.begin() + 12, exchanged.end());
    Dtype one = narrow ? Dtype::kBfloat16 : Dtype::kFloat32;
    Dtype two = narrow ? Dtype::kFloat32 : Dtype::kBfloat16;
    std::vector<test::WrittenTile> halves{{{0, 0}, {2, 6}, 0}, {{2, 0}, {2, 6}, 1}};
    test::MadeModel bad, good;
    bad.tensors.push_back({"model.w", one, {4, 6}, exchanged, halves, {}});
    good.tensors.push_back({"model.w", two, {4, 6}, numbers, halves, {}});
    auto reference = test::made(folder / "good", good);
    auto findings = test::found_in(*test::made(folder / "bad", bad), "tiles-exchanged",
                                   Depth::kHeaders, reference);
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].remedy.has_value());
    CHECK(findings[0].cause.find("narrower of two dtypes") != std::string::npos);
    good.tensors[0].values = exchanged;
    CHECK(test::found_in(*opened(folder / "bad"), "tiles-exchanged", Depth::kData,
                         test::made(folder / "same", good))
              .empty());
  }
}

TEST_CASE("of another step a tile goes where it is like the reference, and only there") {
  std::mt19937 dice(3);
  std::normal_distribution<float> normal;
  auto rows = [&](std::size_t count, std::size_t length) {
    std::vector<std::vector<float>> out(count, std::vector<float>(length));
    for (auto& row : out) {
      for (float& value : row) value = normal(dice);
    }
    return out;
  };
  auto trained = [&](const std::vector<std::vector<float>>& from,
                     const std::vector<std::size_t>& held, float noise) {
    std::vector<std::vector<float>> out;
    for (std::size_t i : held) {
      out.push_back(from[i]);
      for (float& value : out.back()) value = 5 + 2 * (value + noise * normal(dice));
    }
    return out;
  };
  const std::vector<std::size_t> kinds(4, 0), moved{2, 0, 3, 1}, still{0, 1, 2, 3};
  const auto truth = rows(4, 400);
  auto order = match_by_correlation(trained(truth, moved, 1), truth, kinds);
  REQUIRE(order.has_value());
  CHECK(order->place_of == moved);
  CHECK(order->margin > 0.3);
  CHECK_FALSE(match_by_correlation(trained(truth, still, 1), truth, kinds).has_value());
  CHECK_FALSE(match_by_correlation(rows(4, 400), truth, kinds).has_value());
  // Two tiles of one place, one without a counterpart, one that is nowhere, and a constant one.
  CHECK_FALSE(match_by_correlation(trained(truth, {2, 0, 2, 1}, 1), truth, kinds).has_value());
  CHECK_FALSE(
      match_by_correlation(trained(truth, {1, 0, 2, 3}, 1), truth, {0, 1, 2, 3}).has_value());
  auto strange = trained(truth, moved, 1);
  strange[3] = rows(1, 400)[0];
  CHECK_FALSE(match_by_correlation(strange, truth, kinds).has_value());
  strange[3].assign(400, 1.0F);
  CHECK_FALSE(match_by_correlation(strange, truth, kinds).has_value());
  // Too few elements: the match may be chance.
  const auto few = rows(4, 30);
  CHECK_FALSE(match_by_correlation(trained(few, moved, 0.1F), few, kinds).has_value());
}

TEST_CASE("tiles that exchanged places are named next to an earlier step and mended") {
  std::mt19937 dice(5);
  std::normal_distribution<double> normal(0, 1000);
  const Extents shape{12, 64};
  const std::vector<Box> rows = boxes_of({{0, 2, 4, 6, 8, 10, 12}, {0, 64}});
  const std::vector<std::size_t> transposed{0, 3, 1, 4, 2, 5};  // of a mesh of 3 x 2 ranks
  for (bool is_broken : {true, false}) {
    for (Depth depth : {Depth::kHeaders, Depth::kData}) {
      TemporaryFolder folder;
      Values earlier(12 * 64), truth(12 * 64), other(12 * 64), older(12 * 64);
      for (std::size_t i = 0; i < truth.size(); ++i) {
        earlier[i] = static_cast<std::int64_t>(normal(dice));
        truth[i] = earlier[i] + static_cast<std::int64_t>(normal(dice) / 3);
        // Like a moment: correlated with nothing.
        other[i] = static_cast<std::int64_t>(normal(dice));
        older[i] = static_cast<std::int64_t>(normal(dice));
      }
      const std::vector<Box> held = is_broken ? reordered(rows, transposed) : rows;
      write_checkpoint(folder / "good",
                       {tiled("model.w", shape, earlier, {whole(shape)}, {whole(shape)}),
                        tiled("model.v", shape, older, rows, rows)});
      write_checkpoint(folder / "bad", {tiled("model.w", shape, truth, rows, held),
                                        tiled("model.v", shape, other, rows, held)});
      CheckReport report = held_against(folder / "bad", folder / "good", depth);
      const Finding* finding = first_of(report, "tiles-exchanged");
      REQUIRE((finding != nullptr) == is_broken);
      CHECK(count_above_info(report) == (is_broken ? 1 : 0));
      REQUIRE(first_of(report, "differs-from-reference") != nullptr);
      CHECK(first_of(report, "differs-from-reference")->subjects.size() == (is_broken ? 1 : 2));
      if (!is_broken) continue;
      CHECK(finding->subjects == std::vector<std::string>{"model.w"});
      CHECK(finding->cause.find("is like what belongs at") != std::string::npos);
      check_repair(folder, report, "model.w", truth);
    }
  }
}

TEST_CASE("a jigsaw is solved as trying every order of its pieces solves it") {
  std::mt19937 dice(11);
  for (int round = 0; round < 300; ++round) {
    // Rows of numbers cut at random; pieces fit if their numbers match.
    std::int64_t length = 2 + static_cast<std::int64_t>(dice() % 9);
    std::vector<int> truth;
    for (std::int64_t i = 0; i < length; ++i) truth.push_back(static_cast<int>(dice() % 3));
    std::vector<TileKind> kinds;
    std::vector<std::vector<int>> held;
    for (std::int64_t at = 0; at < length;) {
      std::int64_t step = std::min<std::int64_t>(length - at, 1 + dice() % 3);
      held.emplace_back(truth.begin() + at, truth.begin() + at + step);
      kinds.push_back({{step}, {kinds.size()}});
      at += step;
    }
    if (round % 3 == 0) held.back().back() += 1;  // then perhaps no order fits
    auto fits = [&](const std::vector<int>& piece, std::int64_t at) {
      return at + static_cast<std::int64_t>(piece.size()) <= length &&
             std::equal(piece.begin(), piece.end(), truth.begin() + at);
    };
    std::vector<std::size_t> order(held.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    bool possible = false;
    do {
      std::int64_t at = 0;
      bool all = true;
      for (std::size_t i : order) {
        all = all && fits(held[i], at);
        at += static_cast<std::int64_t>(held[i].size());
      }
      possible = possible || all;
    } while (!possible && std::next_permutation(order.begin(), order.end()));
    auto found = put_together({length}, {}, kinds, [&](std::size_t kind, const Box& box) {
      return fits(held[kind], box.offsets[0]);
    });
    CHECK(found.has_value() == possible);
  }
}

namespace {

enum class Harm { kNone, kExchange, kShuffle, kCopy, kOtherStep, kUneven };

// A random tensor in random tiles with damage, and whether that can be recognised.
struct Generated {
  Extents shape;
  Values truth;
  std::vector<Box> recorded, held, other_cut;
  bool later = false;
};

std::vector<std::int64_t> random_cuts(std::mt19937& dice, std::int64_t length) {
  std::vector<std::int64_t> at{0};
  bool even = dice() % 3 != 0;
  std::int64_t step = 1 + static_cast<std::int64_t>(dice()) % length;
  while (at.back() < length) {
    std::int64_t next = even ? step : 1 + static_cast<std::int64_t>(dice() % 3);
    at.push_back(std::min(length, at.back() + next));
  }
  return at;
}

Generated generate(std::mt19937& dice, Harm harm) {
  Generated out;
  std::size_t ndim = harm == Harm::kUneven ? 1 : 1 + dice() % 3;
  Cuts cuts, other;
  for (std::size_t d = 0; d < ndim; ++d) {
    out.shape.push_back(1 + static_cast<std::int64_t>(dice() % (ndim == 1 ? 12 : 6)));
    cuts.push_back(random_cuts(dice, out.shape[d]));
    other.push_back(random_cuts(dice, out.shape[d]));
  }
  // Few different values, so that tiles are equal by chance.
  std::uint32_t values = dice() % 2 == 0 ? 2 : 1000;
  out.truth = counting(out.shape);
  for (std::int64_t& value : out.truth) value = static_cast<std::int64_t>(dice() % values);
  out.recorded = out.held = boxes_of(cuts);
  out.other_cut = dice() % 2 == 0 ? out.recorded : boxes_of(other);
  std::size_t n = out.held.size();
  auto exchange = [&](std::size_t a, std::size_t b) {
    if (out.held[a].sizes == out.held[b].sizes) std::swap(out.held[a], out.held[b]);
  };
  if (harm == Harm::kExchange) exchange(dice() % n, dice() % n);
  for (std::size_t i = 0; harm == Harm::kShuffle && i < n; ++i) exchange(i, dice() % n);
  if (harm == Harm::kCopy) {
    std::size_t a = dice() % n, b = dice() % n;
    if (out.held[a].sizes == out.held[b].sizes) out.held[a] = out.held[b];
  }
  if (harm == Harm::kUneven) {
    std::shuffle(out.held.begin(), out.held.end(), dice);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < n; ++i) {
      out.recorded[i] = {{at}, out.held[i].sizes};
      at += out.held[i].sizes[0];
    }
  }
  out.later = harm == Harm::kOtherStep;
  return out;
}

// The tensor that the tiles make, as recorded.
Values image_of(const Generated& made) {
  Values image(made.truth.size(), -1);
  for (std::size_t i = 0; i < made.recorded.size(); ++i) {
    each(made.held[i].sizes, [&](const Extents& at) {
      image[flat(plus(made.recorded[i].offsets, at), made.shape)] =
          made.truth[flat(plus(made.held[i].offsets, at), made.shape)];
    });
  }
  return image;
}

Harm judge_one(std::mt19937& dice) {
  auto harm = static_cast<Harm>(dice() % 6);
  Generated made = generate(dice, harm);
  Values image = image_of(made), values = made.truth;
  if (made.later) {
    for (std::int64_t& value : values) value = value * 3 + 2000;
  }
  TemporaryFolder folder;
  // An equal tensor shows that both are of the same step.
  MadeTensor same = cut_in_rows("norm", {4}, {1, 2, 3, 4}, 1);
  std::vector<MadeTensor> good{tiled("w", made.shape, made.truth, made.other_cut, made.other_cut)};
  std::vector<MadeTensor> bad{tiled("w", made.shape, values, made.recorded, made.held)};
  if (!made.later) good.push_back(same), bad.push_back(same);
  write_checkpoint(folder / "good", good);
  write_checkpoint(folder / "bad", bad);
  CAPTURE(static_cast<int>(harm));
  CAPTURE(to_text(made.shape));
  CheckReport report = held_against(folder / "bad", folder / "good", Depth::kData);
  Values sorted = image, all = made.truth;
  std::sort(sorted.begin(), sorted.end());
  std::sort(all.begin(), all.end());
  if (made.later || image == made.truth) {
    CHECK(count_above_info(report) == 0);
  } else if (harm == Harm::kCopy) {
    // No repair if the order is not a permutation.
    if (sorted != all) CHECK(plan_for(folder / "bad", report).tensors.empty());
  } else {
    CHECK(count_above_info(report) == 1);
    check_repair(folder, report, "w", made.truth);
  }
  return harm;
}

}  // namespace

TEST_CASE(
    "random tiles harmed at random are reported and mended as a slow look at every element says") {
  std::mt19937 dice(20261121);
  std::map<Harm, int> seen;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    ++seen[judge_one(dice)];
  }
  CHECK(seen.size() == 6);
}
