// A checkpoint compared with a reference: names, orders of blocks, padding, ties, layers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>

#include "core/facts/in_pieces.h"
#include "core/facts/reference/block_compare.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/run/apply.h"
#include "core/rules/check.h"
#include "core/rules/reference/against_support.h"
#include "core/spec/spec_from_checkpoint.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

// The image of `truth` in which true block i along dim 0 is at order[i], row by row.
Values permuted(const Values& truth, const Extents& shape, const std::vector<std::int64_t>& order) {
  Values image(truth.size());
  std::size_t row = truth.size() / static_cast<std::size_t>(shape[0]);
  std::size_t block = truth.size() / order.size();
  REQUIRE(block % row == 0);
  for (std::size_t i = 0; i < order.size(); ++i)
    std::copy_n(
        truth.begin() + static_cast<std::ptrdiff_t>(i * block), block,
        image.begin() + static_cast<std::ptrdiff_t>(order[i]) * static_cast<std::ptrdiff_t>(block));
  return image;
}

std::string family(const Finding& finding) {
  for (const auto& [key, value] : finding.evidence) {
    if (key == "family") return std::get<std::string>(value);
  }
  return "";
}

std::int64_t at_truth_grouped(std::int64_t i, std::int64_t groups, std::int64_t queries) {
  // Written from the table of N2: [q0 q1 k0 v0 q2 q3 k1 v1] for [q0 q1 q2 q3 k0 k1 v0 v1].
  std::vector<std::int64_t> disk;  // true block of each block on disk
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t q = 0; q < queries; ++q) disk.push_back(g * queries + q);
    disk.push_back(groups * queries + g);
    disk.push_back(groups * queries + groups + g);
  }
  return std::find(disk.begin(), disk.end(), i) - disk.begin();
}

struct AgainstCase {
  std::string family;
  std::string fqn;
  std::vector<std::int64_t> order;  // true block -> block on disk
  std::vector<std::uint32_t> writers;
};

std::vector<AgainstCase> known_orders() {
  std::vector<AgainstCase> cases;
  for (std::int64_t dp : {2, 3, 4, 8}) {  // N1: canonical[i] = disk[i / 2 + DP * (i & 1)]
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < 2 * dp; ++i) order.push_back(i / 2 + dp * (i & 1));
    cases.push_back({"swiglu-swizzle", "layers.0.mlp.linear_fc1.weight", order,
                     each_writes(static_cast<std::uint32_t>(dp), 2)});
  }
  cases.push_back({"halves-swapped", "layers.0.mlp.gate_up_proj.weight", {1, 0}, each_writes(4)});
  cases.push_back({"halves-swapped", "layers.0.experts.w13", {1, 0, 3, 2, 5, 4}, each_writes(3)});
  for (std::int64_t ranks : {3, 4, 8}) {  // E5: rank t stacks its own gate and up
    std::vector<std::int64_t> order;
    for (std::int64_t half : {0, 1}) {
      for (std::int64_t t = 0; t < ranks; ++t) order.push_back(2 * t + half);
    }
    cases.push_back({"interleaved", "layers.0.mlp.fc1.weight", order,
                     each_writes(static_cast<std::uint32_t>(ranks))});
  }
  for (auto [groups, queries] : {std::pair<std::int64_t, std::int64_t>{2, 2}, {4, 2}, {3, 4}}) {
    std::vector<std::int64_t> order, back(static_cast<std::size_t>(groups * (queries + 2)));
    for (std::int64_t i = 0; i < groups * (queries + 2); ++i)
      order.push_back(at_truth_grouped(i, groups, queries));
    for (std::size_t i = 0; i < order.size(); ++i)
      back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    cases.push_back({"gqa-grouped", "layers.0.attn.qkv.weight", order, each_writes(1)});
    cases.push_back({"gqa-stacked", "layers.0.attn.qkv.weight", back, each_writes(2)});
  }
  {  // S5 E2: row block r = t * D + d is at w = d * T + t
    std::vector<std::int64_t> order;
    for (std::int64_t t = 0; t < 4; ++t) {
      for (std::int64_t d = 0; d < 3; ++d) order.push_back(d * 4 + t);
    }
    cases.push_back({"axes-transposed", "layers.0.mlp.fc1.weight", order, each_writes(12)});
  }
  cases.push_back({"unknown", "layers.0.mlp.fc1.weight", {3, 0, 5, 1, 4, 2}, each_writes(2)});
  return cases;
}

}  // namespace

TEST_CASE("every known order of blocks is named, and its repair gives the reference back") {
  for (const AgainstCase& one : known_orders()) {
    CAPTURE(one.family);
    CAPTURE(one.order.size());
    TemporaryFolder folder;
    auto blocks = static_cast<std::int64_t>(one.order.size());
    std::int64_t rows = std::lcm(blocks * 2, static_cast<std::int64_t>(one.writers.size()));
    Extents shape{rows, 3};
    Values truth = counting(shape);
    write_checkpoint(folder / "good", {in_rows(one.fqn, shape, truth, each_writes(1))});
    write_checkpoint(folder / "bad",
                     {in_rows(one.fqn, shape, permuted(truth, shape, one.order), one.writers)});
    CheckReport report = held_against(folder / "bad", folder / "good");
    const Finding* finding = first_of(report, "blocks-permuted");
    REQUIRE(finding != nullptr);
    CHECK(family(*finding) == one.family);
    CHECK(finding->severity == Severity::kError);
    REQUIRE(finding->remedy.has_value());
    CHECK(finding->remedy->lossless);
    std::string out = repaired_into(folder / "bad", report, folder / "out");
    CHECK(values_of(*opened(out), one.fqn) == truth);
    CHECK(count_above_info(held_against(out, folder / "good", Depth::kData)) == 0);
  }
}

TEST_CASE("orders of blocks are reported and mended next to an earlier step of the training") {
  std::mt19937 dice(31);
  std::normal_distribution<double> normal(0, 1000);
  for (const AgainstCase& one : known_orders()) {
    CAPTURE(one.family);
    CAPTURE(one.order.size());
    TemporaryFolder folder;
    auto blocks = static_cast<std::int64_t>(one.order.size());
    const Extents shape{std::lcm(blocks * 2, static_cast<std::int64_t>(one.writers.size())), 256};
    Values earlier = counting(shape), truth = earlier, moment = earlier;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      earlier[i] = static_cast<std::int64_t>(normal(dice));
      truth[i] = earlier[i] + static_cast<std::int64_t>(normal(dice) / 4);
      moment[i] = static_cast<std::int64_t>(normal(dice));
    }
    const std::string state = "optim.state." + one.fqn + ".exp_avg";
    write_checkpoint(folder / "good", {in_rows(one.fqn, shape, earlier, each_writes(1)),
                                       in_rows(state, shape, earlier, each_writes(1))});
    write_checkpoint(folder / "bad",
                     {in_rows(one.fqn, shape, permuted(truth, shape, one.order), one.writers),
                      in_rows(state, shape, moment, one.writers)});
    CheckReport report = held_against(folder / "bad", folder / "good", Depth::kData);
    REQUIRE(count_above_info(report) == 1);
    const Finding& finding = report.findings.front();
    // A block that is a tile is reported as an exchanged tile.
    const bool is_tile = finding.rule == "tiles-exchanged";
    CHECK((is_tile || finding.rule == "blocks-permuted"));
    if (!is_tile) CHECK(family(finding) == one.family);
    CHECK(finding.subjects == std::vector<std::string>{one.fqn});
    CHECK(finding.cause.find("Training has changed") != std::string::npos);
    REQUIRE(finding.remedy.has_value());
    CHECK(finding.remedy->text.find(state + " is left as saved") != std::string::npos);
    std::string out = repaired_into(folder / "bad", report, folder / "out");
    CHECK(values_of(*opened(out), one.fqn) == truth);
    CHECK(values_of(*opened(out), state) == moment);
    CHECK(count_above_info(held_against(out, folder / "good", Depth::kData)) == 0);
    CHECK(count_above_info(held_against(folder / "good", out, Depth::kData)) == 0);
  }
}

TEST_CASE(
    "rows of heads in another order are named as heads and only those of a GLU as gate and up") {
  struct Order {
    std::string fqn, family;
    std::vector<std::int64_t> order;  // true block -> block on disk
  };
  // Two heads of eight rows: true row (half, j) of a head is at (j, half), and the reverse.
  std::vector<std::int64_t> pairs, halves(16);
  for (std::int64_t i = 0; i < 16; ++i) pairs.push_back(i / 8 * 8 + i % 4 * 2 + i % 8 / 4);
  for (std::size_t i = 0; i < 16; ++i)
    halves[static_cast<std::size_t>(pairs[i])] = static_cast<std::int64_t>(i);
  for (const Order& one : std::vector<Order>{
           {"model.layers.0.self_attn.k_proj.weight", "heads-permuted", {1, 0}},
           {"model.layers.0.self_attn.q_proj.weight", "heads-permuted", {2, 0, 3, 1}},
           {"model.layers.0.self_attn.k_proj.weight", "rope-interleaved", pairs},
           {"layers.0.attention.wq.weight", "rope-halved", halves},
           {"model.layers.0.self_attn.o_proj.weight", "halves-swapped", {1, 0}},
           {"model.layers.0.mlp.down_proj.weight", "halves-swapped", {1, 0}},
           {"model.layers.0.mlp.gate_proj.weight", "halves-swapped", {1, 0}}}) {
    CAPTURE(one.fqn);
    TemporaryFolder folder;
    Extents shape{16, 3};
    Values truth = counting(shape);
    write_checkpoint(folder / "good", {in_rows(one.fqn, shape, truth, each_writes(1))});
    write_checkpoint(folder / "bad",
                     {in_rows(one.fqn, shape, permuted(truth, shape, one.order), each_writes(1))});
    CheckReport report = held_against(folder / "bad", folder / "good", Depth::kData);
    const Finding* finding = first_of(report, "blocks-permuted");
    REQUIRE(finding != nullptr);
    CHECK(family(*finding) == one.family);
    bool glu = finding->cause.find("gate and up") != std::string::npos;
    CHECK(glu == (one.fqn.find("gate_proj") != std::string::npos));
    CHECK(values_of(*opened(repaired_into(folder / "bad", report, folder / "out")), one.fqn) ==
          truth);
  }
}

TEST_CASE("stacked experts in another order are named as experts, next to an earlier step too") {
  std::mt19937 dice(32);
  std::normal_distribution<double> normal(0, 1000);
  const std::string fqn = "model.layers.0.mlp.experts.gate_up_proj";
  const Extents shape{4, 8, 32};
  Values truth(4 * 8 * 32), earlier = truth;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    earlier[i] = static_cast<std::int64_t>(normal(dice));
    truth[i] = earlier[i] + static_cast<std::int64_t>(normal(dice) / 4);
  }
  TemporaryFolder folder;
  write_checkpoint(folder / "good", {in_rows(fqn, shape, truth, each_writes(1))});
  write_checkpoint(folder / "earlier", {in_rows(fqn, shape, earlier, each_writes(1))});
  write_checkpoint(folder / "bad",
                   {in_rows(fqn, shape, permuted(truth, shape, {1, 0, 3, 2}), each_writes(1))});
  for (const char* other : {"good", "earlier"}) {
    CheckReport report = held_against(folder / "bad", folder / other, Depth::kData);
    const Finding* finding = first_of(report, "blocks-permuted");
    REQUIRE(finding != nullptr);
    CHECK(family(*finding) == "experts-permuted");
    CHECK(finding->cause.find("its experts are in a different order") != std::string::npos);
    std::string out = repaired_into(folder / "bad", report, folder / (std::string("out-") + other));
    CHECK(values_of(*opened(out), fqn) == truth);
  }
}

TEST_CASE("blocks along a later dimension are found too") {
  TemporaryFolder folder;
  Extents shape{2, 8, 3};
  Values truth = counting(shape), image = truth;
  for (std::int64_t e = 0; e < 2; ++e) {  // gate and up swapped in every expert
    for (std::int64_t i = 0; i < 8; ++i) {
      for (std::int64_t j = 0; j < 3; ++j)
        image[flat({e, i, j}, shape)] = truth[flat({e, (i + 4) % 8, j}, shape)];
    }
  }
  write_checkpoint(folder / "good",
                   {in_rows("experts.gate_up_proj", shape, truth, each_writes(1))});
  write_checkpoint(folder / "bad", {in_rows("experts.gate_up_proj", shape, image, each_writes(2))});
  CheckReport report = held_against(folder / "bad", folder / "good");
  const Finding* finding = first_of(report, "blocks-permuted");
  REQUIRE(finding != nullptr);
  CHECK(family(*finding) == "halves-swapped");
  REQUIRE(finding->diagnoses.size() == 1);
  CHECK(std::get<BlocksPermuted>(finding->diagnoses[0]).dim == 1);
  CHECK(values_of(*opened(repaired_into(folder / "bad", report, folder / "out")),
                  "experts.gate_up_proj") == truth);
}

TEST_CASE("a random order is solved as a slow search solves it") {
  std::mt19937 dice(7);
  for (int round = 0; round < 200; ++round) {
    std::int64_t rows = 2 + static_cast<std::int64_t>(dice() % 9);
    std::int64_t columns = 1 + static_cast<std::int64_t>(dice() % 3);
    Extents shape{rows, columns};
    Bytes truth(static_cast<std::size_t>(rows * columns)), image(truth.size());
    // Few values: equal rows are common.
    for (std::byte& b : truth) b = static_cast<std::byte>(dice() % 3);
    std::vector<std::size_t> order(static_cast<std::size_t>(rows));
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), dice);
    auto width = static_cast<std::size_t>(columns);
    for (std::size_t i = 0; i < order.size(); ++i)
      std::copy_n(&truth[i * width], width, &image[order[i] * width]);
    BlockComparison found = *compare_blocks(test::in_pieces(Dtype::kUint8, shape, image, dice),
                                            test::in_pieces(Dtype::kUint8, shape, truth, dice));
    if (image == truth) {
      CHECK(found.answer == BlockAnswer::kSame);
      continue;
    }
    CHECK(found.answer != BlockAnswer::kSame);
    CHECK(found.answer != BlockAnswer::kDiffers);
    if (found.answer != BlockAnswer::kPermuted) continue;
    // Element by element, along the dimension that it names.
    Extents at(2, 0);
    for (at[0] = 0; at[0] < rows; ++at[0]) {
      for (at[1] = 0; at[1] < columns; ++at[1]) {
        Extents from = at;
        std::int64_t& moved = from[found.order.dim];
        moved = found.order.order[static_cast<std::size_t>(moved / found.order.block)] *
                    found.order.block +
                moved % found.order.block;
        CHECK(truth[flat(at, shape)] == image[flat(from, shape)]);
      }
    }
  }
}

TEST_CASE("a checkpoint against itself and against a resharded copy says nothing above info") {
  TemporaryFolder folder;
  Extents matrix{12, 12}, vector{12};
  Values ones(12, 1), zeros(144, 0);
  auto tensors = [&](std::uint32_t ranks, const std::string& prefix) {
    return std::vector<MadeTensor>{
        in_rows(prefix + "layers.0.mlp.fc1.weight", matrix, counting(matrix), each_writes(ranks)),
        in_rows(prefix + "layers.0.norm.weight", vector, ones, each_writes(ranks)),
        in_rows(prefix + "layers.0.experts.bias", matrix, zeros, each_writes(ranks)),
        in_rows(prefix + "lm_head.weight", matrix, counting(matrix), each_writes(ranks)),
        in_rows(prefix + "embed_tokens.weight", matrix, counting(matrix), each_writes(ranks))};
  };
  write_checkpoint(folder / "one", tensors(4, "model."));
  write_checkpoint(folder / "other", tensors(3, "module.model."));
  for (Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
    CHECK(count_above_info(held_against(folder / "one", folder / "one", depth)) == 0);
    CheckReport report = held_against(folder / "one", folder / "other", depth);
    CHECK(count_above_info(report) == 0);
    CHECK(first_of(report, "missing-key") == nullptr);
    CHECK(first_of(report, "differs-from-reference") == nullptr);
    CHECK(report.spec->entries.size() == 5);
  }
}

TEST_CASE("equal blocks leave the order undecided, and no repair is offered") {
  TemporaryFolder folder;
  Extents shape{6, 3};
  Values truth = counting(shape);
  std::copy_n(truth.begin(), 3, truth.begin() + 9);  // row 3 is row 0
  Values image = permuted(truth, shape, {1, 0, 2, 3, 5, 4});
  write_checkpoint(folder / "good", {in_rows("fc1.weight", shape, truth, each_writes(1))});
  write_checkpoint(folder / "bad", {in_rows("fc1.weight", shape, image, each_writes(2))});
  CheckReport report = held_against(folder / "bad", folder / "good");
  // Blocks of two rows differ, but are not the same blocks in both.
  CHECK(count_above_info(report) == 0);
  const Finding* finding = first_of(report, "differs-from-reference");
  REQUIRE(finding != nullptr);
  CHECK(finding->cause.find("undecided") != std::string::npos);
}

TEST_CASE("differs-from-reference: next to a copy of the step other values are a warning") {
  TemporaryFolder folder;
  const Extents shape{16, 6};
  auto model = [&](const std::function<Values(int)>& values) {
    std::vector<MadeTensor> tensors;
    for (int i = 0; i < 4; ++i)
      tensors.push_back(in_rows("layers." + std::to_string(i) + ".proj.weight", shape, values(i),
                                each_writes(4)));
    return tensors;
  };
  auto numbers = [&](int i) {
    Values values = counting(shape);
    for (std::int64_t& value : values) value = (value * 7919 + i * 104729) % 251;
    return values;
  };
  write_checkpoint(folder / "good", model(numbers));
  auto changed = [&](const std::function<void(Values&)>& change) {
    return [&numbers, change](int i) {
      Values values = numbers(i);
      if (i == 2) change(values);
      return values;
    };
  };
  auto zeros = changed([](Values& values) { std::fill_n(values.begin() + 24, 24, 0); });
  auto doubled = changed([](Values& values) {
    for (std::size_t i = 24; i < 48; ++i) values[i] *= 2;
  });
  auto one = changed([](Values& values) { values[30] += 1; });
  for (const auto& values : {model(zeros), model(doubled), model(one)}) {
    TemporaryFolder bad;
    write_checkpoint(bad / "bad", values);
    CheckReport report = held_against(bad / "bad", folder / "good", Depth::kData);
    const Finding* finding = first_of(report, "differs-from-reference");
    REQUIRE(finding != nullptr);
    CHECK(finding->severity == Severity::kWarning);
    CHECK(finding->subjects == std::vector<std::string>{"layers.2.proj.weight"});
    CHECK(finding->cause.find(" of 96 elements") != std::string::npos);
  }
  // Trained with frozen weights: each chunk changes a little.
  write_checkpoint(folder / "tuned", model(changed([](Values& values) {
                     for (std::size_t i = 0; i < values.size(); ++i)
                       values[i] += static_cast<std::int64_t>(i % 3);
                   })));
  CHECK(count_above_info(held_against(folder / "tuned", folder / "good", Depth::kData)) == 0);
  // Another training step, in which all tensors change.
  write_checkpoint(folder / "later", model([&](int i) {
                     Values values = numbers(i);
                     for (std::int64_t& value : values) value += 1 + value % 3;
                     return values;
                   }));
  CHECK(count_above_info(held_against(folder / "later", folder / "good", Depth::kData)) == 0);
}

TEST_CASE("another step of the same training is not a defect") {
  TemporaryFolder folder;
  Extents shape{8, 8};
  Values later = counting(shape);
  for (std::int64_t& value : later) value = 1000 - value * value;
  write_checkpoint(folder / "one", {in_rows("fc1.weight", shape, counting(shape), each_writes(2))});
  write_checkpoint(folder / "two", {in_rows("fc1.weight", shape, later, each_writes(2))});
  CheckReport report = held_against(folder / "two", folder / "one", Depth::kData);
  CHECK(count_above_info(report) == 0);
  CHECK(first_of(report, "differs-from-reference") != nullptr);
}

TEST_CASE("a transposed matrix is told from a right one, square or not") {
  for (Extents shape : {Extents{6, 6}, Extents{6, 4}, Extents{2, 4, 4}}) {
    TemporaryFolder folder;
    std::size_t n = shape.size();
    Extents crossed = shape;
    std::swap(crossed[n - 1], crossed[n - 2]);
    Values truth = counting(shape), image(truth.size());
    each(shape, [&](const Extents& at) {
      Extents there = at;
      std::swap(there[n - 1], there[n - 2]);
      image[flat(there, crossed)] = truth[flat(at, shape)];
    });
    write_checkpoint(folder / "good", {in_rows("o_proj.weight", shape, truth, each_writes(1))});
    write_checkpoint(folder / "bad", {in_rows("o_proj.weight", crossed, image, each_writes(2))});
    CheckReport report = held_against(folder / "bad", folder / "good");
    CHECK(first_of(report, "transposed") != nullptr);
    CHECK(first_of(report, "blocks-permuted") == nullptr);
    CHECK(first_of(report, "shape-mismatch") == nullptr);
  }
}
