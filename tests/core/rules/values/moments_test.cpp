// Rules about optimizer states: moments and master weights.
#include <algorithm>
#include <cmath>

#include "core/facts/states/moment_constraints.h"
#include "core/facts/states/optimizer_settings.h"
#include "core/facts/values/locate_rows.h"
#include "core/rules/make_contents.h"
#include "core/rules/saved_model.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

namespace {

MadeEntry betas(double first, double second) {
  return {"optimizer.param_groups.0.betas", pickled_pair(first, second)};
}

MadeEntry params(const std::vector<std::string>& names) {
  std::vector<std::string> items;
  for (const std::string& name : names) items.push_back(pickled_text(name));
  return {"optimizer.param_groups.0.params", pickled_list(items)};
}

// An entry that torch's own Adam writes next to the betas.
MadeEntry of_adam() {
  return {"optimizer.param_groups.0.amsgrad", pickled_text("False")};
}

MadeModel layers_trained(int count, double beta1, double beta2) {
  MadeModel model;
  for (int i = 0; i < count; ++i) {
    Moments moments = trained(64, 50, beta1, beta2, static_cast<std::uint64_t>(i) + 1);
    model.pair("l" + std::to_string(i) + ".weight", {8, 8}, moments.mean, moments.square);
  }
  return model;
}

TensorValues values(Dtype dtype, const Extents& shape, const Numbers& numbers) {
  return {dtype, shape, as_dtype(numbers, dtype), 0};
}

}  // namespace

TEST_CASE("F3.8: of two elements one is beyond the bound of the betas that were saved") {
  TemporaryFolder folder;
  MadeModel model;
  model.pair("w", {2}, {0.1, 0.5}, {0.01, 0.01});
  model.entries = {betas(0.9, 0.95), params({"w"}), of_adam()};
  auto findings = found_in(*made(folder / "a", model), "moment-bound");
  REQUIRE(findings.size() == 1);
  CHECK(evidence<std::int64_t>(findings[0], "elements_above") == 1);
  CHECK(evidence<double>(findings[0], "bound") == doctest::Approx(1.357).epsilon(0.001));
  CHECK(evidence<std::vector<std::string>>(findings[0], "betas").front() ==
        "0.9 and 0.95, saved next to the states");
  CHECK(findings[0].severity == Severity::kWarning);
  // The optimizer of the betas is unknown: AdaBelief stores its moments under these names.
  model.entries.pop_back();
  findings = found_in(*made(folder / "c", model), "moment-bound");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::kInfo);
  CHECK(findings[0].cause.find("AdaBelief") != std::string::npos);
  // With the default betas, which are assumed if none are saved, 25 is within the bound of 52.9.
  model.entries.clear();
  CHECK(found_in(*made(folder / "b", model), "moment-bound").empty());
}

TEST_CASE("moments that no rule allows are a warning however many there are and zeros are none") {
  struct Case {
    double mean, square;
    std::optional<Severity> severity;
  };
  for (auto [mean, square, severity] :
       {Case{0, 0, {}}, Case{0.1, 0.01, {}}, Case{0.1, -0.01, Severity::kWarning},
        Case{0.1, 0, Severity::kWarning}, Case{0.1, 1e-8, Severity::kInfo},
        Case{0.1, 1e-4, Severity::kInfo}}) {  // a ratio of 100: beta1 = 0.8 allows it
    CAPTURE(mean);
    CAPTURE(square);
    TemporaryFolder folder;
    MadeModel model;
    for (const char* name : {"a", "b"}) model.pair(name, {4}, Numbers(4, mean), Numbers(4, square));
    auto findings = found_in(*made(folder / "a", model), "moment-bound");
    REQUIRE(findings.size() == (severity ? 1 : 0));
    if (severity) CHECK(findings[0].severity == *severity);
  }
}

TEST_CASE("swapped moments of one parameter are a warning next to pairs that fit") {
  TemporaryFolder folder;
  MadeModel model = layers_trained(4, 0.9, 0.95);
  model.entries = {betas(0.9, 0.95), params({"l0.weight", "l1.weight", "l2.weight", "l3.weight"})};
  CHECK(found_in(*made(folder / "healthy", model), "moment-bound").empty());
  std::swap(model.tensors[2].values, model.tensors[3].values);
  auto findings = found_in(*made(folder / "swapped", model), "moment-bound");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::kWarning);
  CHECK(findings[0].subjects == std::vector<std::string>{"optimizer.state.l1.weight.exp_avg",
                                                         "optimizer.state.l1.weight.exp_avg_sq"});
  CHECK(found_in(*made(folder / "b", model), "moment-bound", Depth::kHeaders).empty());
}

TEST_CASE("what other rules than Adam's and other betas leave behind is not a mistake") {
  TemporaryFolder folder;
  auto severity = [&](const std::string& name, const MadeModel& model) {
    auto findings = found_in(*made(folder / name, model), "moment-bound");
    return findings.empty() ? std::optional<Severity>() : findings[0].severity;
  };
  auto with_betas = [](MadeModel model, double first, double second) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < model.tensors.size() / 2; ++i)
      names.push_back("l" + std::to_string(i) + ".weight");
    model.entries = {betas(first, second), params(names), of_adam()};
    return model;
  };
  MadeModel adopt = layers_trained(8, 0.9, 0.95);  // its mean is of gradients divided by their root
  for (std::size_t i = 0; i < adopt.tensors.size(); i += 2) {
    for (double& mean : adopt.tensors[i].values) mean *= 1e5;
  }
  CHECK(severity("adopt", with_betas(adopt, 0.9, 0.95)) == Severity::kInfo);
  CHECK(severity("adopt without betas", adopt) == Severity::kInfo);
  // As many elements, but only of one pair: the mean is another tensor's.
  MadeModel one = layers_trained(8, 0.9, 0.95);
  for (double& mean : one.tensors[4].values) mean *= 1e5;
  CHECK(severity("one", with_betas(one, 0.9, 0.95)) == Severity::kWarning);
  CHECK(severity("one without betas", one) == Severity::kInfo);

  MadeModel soap = one;  // the second moment is of the rotated gradient
  for (int base = 0; base < 2; ++base)
    soap.add("optimizer.state.l2.weight.Q." + std::to_string(base), Dtype::kFloat32, {8, 8},
             distinct(64));
  CHECK_FALSE(severity("soap", soap).has_value());

  MadeModel slow = layers_trained(8, 0.9, 0.999);
  CHECK_FALSE(severity("as saved", with_betas(slow, 0.9, 0.999)).has_value());
  CHECK(severity("changed", with_betas(slow, 0.9, 0.95)) == Severity::kInfo);

  MadeModel spiked = layers_trained(8, 0.9, 0.95);  // beta1 = 0: one gradient, 100 times its mean
  spiked.tensors[0].values[5] = std::sqrt(99 * spiked.tensors[1].values[5]);
  CHECK(severity("spiked", spiked) == Severity::kInfo);
  CHECK(severity("spiked under its betas", with_betas(spiked, 0.9, 0.95)) == Severity::kWarning);
}

TEST_CASE("no beta1 up to beta2 leads a mean further from its square than the bound of any") {
  Dice dice(7);
  double worst = 0;
  for (double beta2 : {0.9, 0.95, 0.99, 0.999}) {
    for (int run = 0; run < 300; ++run) {
      const int form = run % 4, steps = static_cast<int>(1 + dice.upto(80));
      double m = 0, v = 0;
      for (int t = 0; t < steps; ++t) {
        double share = static_cast<double>(dice.upto(1000)) / 1000;
        if (form == 1) share = static_cast<double>(t) / steps;  // warmed up
        if (form == 2) share = std::abs(1 - 2.0 * t / steps);   // a cycle
        if (form == 3) share = t + 1 < steps ? 0 : 1;           // held for one step
        double beta1 = beta2 * share;
        double g = dice.one_in(3) ? 0 : static_cast<double>(dice.upto(1000) - 500);
        m = beta1 * m + (1 - beta1) * g;
        v = beta2 * v + (1 - beta2) * g * g;
      }
      if (v > 0) worst = std::max(worst, m * m / v / moment_constant_any_beta1(beta2));
    }
  }
  CHECK(worst <= 1 + 1e-9);
  CHECK(worst > 0.5);  // the bound is nearly reached
}

TEST_CASE(
    "a beta1 that rose during the run is not a mistake and rows that no beta1 explains are one") {
  TemporaryFolder folder;
  MadeModel model;
  for (int i = 0; i < 8; ++i) {
    double m = 0, v = 0;
    Numbers mean, square;
    for (int element = 0; element < 64; ++element) {
      Dice dice(static_cast<std::uint32_t>(100 * i + element));
      for (int t = 0; t < 40; ++t) {
        double beta1 = t < 39 ? 0.1 : 0.9, g = static_cast<double>(dice.upto(1000) - 500) / 1e4;
        if (t == 38 && element % 8 == 0) g = 1;
        m = beta1 * m + (1 - beta1) * g;
        v = 0.999 * v + 0.001 * g * g;
      }
      mean.push_back(m);
      square.push_back(v);
    }
    model.pair("l" + std::to_string(i) + ".weight", {8, 8}, mean, square);
  }
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) names.push_back("l" + std::to_string(i) + ".weight");
  model.entries = {betas(0.9, 0.999), params(names), of_adam()};
  auto findings = found_in(*made(folder / "risen", model), "moment-bound");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::kInfo);
  CHECK(findings[0].cause.find("beta1") != std::string::npos);
  model.tensors[6].values[5] = std::sqrt(1100 * model.tensors[7].values[5]);
  findings = found_in(*made(folder / "mixed", model), "moment-bound");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::kWarning);
}

TEST_CASE("the logarithms of two moments follow each other, and those of shuffled ones do not") {
  Moments moments = trained(20'000, 30, 0.9, 0.999);
  LogCorrelation right, shuffled;
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0, n = 0;  // the slow way
  for (std::size_t i = 0; i < moments.mean.size(); ++i) {
    right.add(moments.mean[i], moments.square[i]);
    shuffled.add(moments.mean[i], moments.square[(i * 7919) % moments.square.size()]);
    double a = std::log(std::abs(moments.mean[i])), b = 0.5 * std::log(moments.square[i]);
    x += a, y += b, xx += a * a, yy += b * b, xy += a * b, n += 1;
  }
  double slow = (xy - x * y / n) / std::sqrt((xx - x * x / n) * (yy - y * y / n));
  CHECK(right.value() == doctest::Approx(slow).epsilon(1e-6));
  CHECK(right.value() > 0.5);
  CHECK(std::abs(shuffled.value()) < 0.05);

  TemporaryFolder folder;
  MadeModel model;
  model.pair("w", {200, 100}, moments.mean, moments.square);
  CHECK(found_in(*made(folder / "healthy", model), "moment-correlation").empty());
  Numbers rows = moments.square;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = moments.square[(i * 7919) % rows.size()];
  model.tensors[1].values = rows;
  auto findings = found_in(*made(folder / "shuffled", model), "moment-correlation");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::kInfo);
  CHECK_FALSE(findings[0].remedy.has_value());
}

TEST_CASE("rows are found where they are, along any axis, and nowhere where they are twice") {
  Numbers all = distinct(12 * 4);
  TensorValues weight = values(Dtype::kBfloat16, {12, 4}, all);
  for (std::int64_t at : {0, 5, 9}) {
    Numbers rows(all.begin() + at * 4, all.begin() + at * 4 + 12);
    auto found = locate_rows(values(Dtype::kFloat32, {3, 4}, rows), weight);
    REQUIRE(found.has_value());
    CHECK(found->dim == 0);
    CHECK(found->at == at);
    CHECK(found->count == 3);
    CHECK(found->elements == 12);
  }
  Numbers column;
  for (std::size_t row = 0; row < 12; ++row) column.push_back(all[row * 4 + 2]);
  auto found = locate_rows(values(Dtype::kFloat32, {12, 1}, column), weight);
  REQUIRE(found.has_value());
  CHECK(found->dim == 1);
  CHECK(found->at == 2);
  // Different values, two axes at once, and rows that are all equal.
  CHECK_FALSE(locate_rows(values(Dtype::kFloat32, {3, 4}, distinct(12, 3)), weight));
  CHECK_FALSE(locate_rows(values(Dtype::kFloat32, {3, 2}, distinct(6)), weight));
  TensorValues ones = values(Dtype::kBfloat16, {12, 4}, Numbers(48, 1));
  CHECK_FALSE(locate_rows(values(Dtype::kFloat32, {3, 4}, Numbers(12, 1)), ones));
  CHECK_FALSE(locate_rows(values(Dtype::kFloat32, {}, {1}), values(Dtype::kFloat32, {}, {1})));
}

TEST_CASE("rows that moved are named as runs") {
  Numbers all = distinct(8 * 4), moved(all);
  std::rotate(moved.begin(), moved.begin() + 8, moved.end());  // two rows
  auto runs = locate_moved_rows(values(Dtype::kFloat32, {8, 4}, moved),
                                values(Dtype::kBfloat16, {8, 4}, all));
  CHECK(runs == std::vector<RowRun>{{0, 6, 2}, {6, 2, 0}});
  CHECK(
      locate_moved_rows(values(Dtype::kFloat32, {8, 4}, all), values(Dtype::kBfloat16, {8, 4}, all))
          .empty());
}

TEST_CASE("masters that are the weights raise nothing, shifted ones are found at their place") {
  TemporaryFolder folder;
  MadeModel model;
  for (int i = 0; i < 3; ++i) {
    std::string name = "l" + std::to_string(i) + ".weight";
    Numbers master = distinct(16 * 8, 1 + i);
    model.add("model." + name, Dtype::kBfloat16, {16, 8}, master);
    model.add("optimizer.state." + name + ".master_param", Dtype::kFloat32, {16, 8}, master);
  }
  CHECK(found_in(*made(folder / "healthy", model), "master-cast").empty());

  MadeModel shifted = model;
  Numbers& rows = shifted.tensors[3].values;
  std::rotate(rows.begin(), rows.begin() + 4 * 8, rows.end());
  auto findings = found_in(*made(folder / "shifted", shifted), "master-cast");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::kError);
  CHECK(findings[0].subjects == std::vector<std::string>{"optimizer.state.l1.weight.master_param"});
  CHECK(evidence<std::vector<std::string>>(findings[0], "found_again_at").front() ==
        "optimizer.state.l1.weight.master_param: rows [0, 12) are rows [4, 16) of the weight and "
        "rows [12, 16) are rows [0, 4) of the weight");

  // Saved before the copy back: all elements differ a little.
  for (MadeContent& tensor : model.tensors) {
    if (tensor.dtype != Dtype::kFloat32) continue;
    for (double& value : tensor.values) value *= 1.02;
  }
  auto behind = found_in(*made(folder / "behind", model), "master-cast");
  REQUIRE(behind.size() == 1);
  CHECK(behind[0].severity == Severity::kInfo);
}

// Optimizer states of single ranks, with master weights whose values show where they belong.
TEST_CASE("values confirm where a surviving master belongs, and a contradiction stops the repair") {
  auto model_with = [](std::int64_t rows_of_rank) {
    Numbers weight = distinct(8 * 16);
    MadeModel model;
    model.add("model.fc.weight", Dtype::kBfloat16, {8, 16}, weight);
    for (std::uint32_t rank = 0; rank < 4; ++rank)
      model.tensors[0].tiles.push_back({{2 * rank, 0}, {2, 16}, rank});
    std::uint32_t writer = 1;
    for (const char* kind : {"exp_avg", "exp_avg_sq", "master_param"}) {
      std::int64_t first = 16 * 2 * rows_of_rank;
      Numbers rows(weight.begin() + first, weight.begin() + first + 32);
      MadeContent state{std::string("optimizer.state.fc.weight.") + kind,
                        Dtype::kFloat32,
                        {2, 16},
                        rows,
                        {{{0, 0}, {2, 16}, writer++}},
                        {}};
      model.tensors.push_back(std::move(state));
    }
    return model;
  };
  TemporaryFolder folder;
  auto agree = made(folder / "agree", model_with(3));
  auto findings = found_in(*agree, "local-saved-as-global");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].diagnoses.size() == 3);
  CHECK(evidence<std::vector<std::string>>(findings[0], "values_agree").front() ==
        "bfloat16(optimizer.state.fc.weight.master_param) equals model.fc.weight rows [6, 8)");

  auto other = made(folder / "other", model_with(1));
  auto doubted = found_in(*other, "local-saved-as-global");
  REQUIRE(doubted.size() == 1);
  CHECK(doubted[0].severity == Severity::kError);
  CHECK(doubted[0].diagnoses.empty());
  CHECK_FALSE(doubted[0].remedy.has_value());
  CHECK(evidence<std::string>(doubted[0], "undecided").size() > 20);
  // Without --data the values were not read.
  CHECK(found_in(*other, "local-saved-as-global", Depth::kHeaders)[0].diagnoses.size() == 3);
}
