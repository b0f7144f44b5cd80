// Masters of Megatron's optimizer that are their weights but shifted; and groups without states.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/facts/values/flat_shift.h"
#include "core/formats/items/items.h"
#include "core/model/state_names.h"
#include "core/repair/against_source.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/rules/make_contents.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

namespace {

std::string layer(int i) {
  return "decoder.layers." + std::to_string(i) + ".weight";
}

// Four layers [12, 8]. In the `shifted` ones masters and moments begin `by` elements later, and end
// in zeros.
MadeModel megatron(std::size_t by, const std::vector<int>& shifted) {
  MadeModel model;
  for (int i = 0; i < 4; ++i) {
    const Numbers master = distinct(96, 1 + i);
    const Moments moments = trained(96, 100, 0.9, 0.999, static_cast<std::uint64_t>(i) + 1);
    model.add(layer(i), Dtype::kBfloat16, {12, 8}, master);
    auto add = [&](const std::string& kind, Numbers values) {
      if (std::find(shifted.begin(), shifted.end(), i) != shifted.end()) {
        values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(by));
        values.resize(96, 0);
      }
      model.add("optimizer.state." + kind + "." + layer(i), Dtype::kFloat32, {12, 8},
                std::move(values));
    };
    add("param", master);
    add("exp_avg", moments.mean);
    add("exp_avg_sq", moments.square);
  }
  return model;
}

}  // namespace

TEST_CASE("flat shift: a run that is another one further on is found with its distance") {
  std::vector<std::uint16_t> whole(200), part(200, 0);
  for (std::size_t i = 0; i < whole.size(); ++i)
    whole[i] = static_cast<std::uint16_t>(i * i * 7 + 11 * i);
  std::copy(whole.begin() + 30, whole.end(), part.begin());
  CHECK(flat_shift(part, whole) == std::optional<std::int64_t>(30));
  CHECK(flat_shift(whole, part) == std::optional<std::int64_t>(-30));
  CHECK_FALSE(flat_shift(whole, whole).has_value());
  part[3] ^= 1;
  CHECK_FALSE(flat_shift(part, whole).has_value());
  const std::vector<std::uint16_t> zeros(200, 0);
  CHECK_FALSE(flat_shift(zeros, whole).has_value());
}

TEST_CASE("state names: Megatron's master copies are recognised by their kind") {
  auto path = parse_state_fqn("optimizer.state.param.decoder.layers.0.weight");
  REQUIRE(path.has_value());
  CHECK(path->key == "decoder.layers.0.weight");
  CHECK(role_of_kind(path->kind) == StateRole::kMaster);
  path = parse_state_fqn("optimizer.state.param.exp_avg");
  REQUIRE(path.has_value());
  CHECK(path->key == "param");
}

TEST_CASE("master copies: those of Megatron that are their weights raise nothing") {
  TemporaryFolder folder;
  CHECK(found_in(*made(folder / "a", megatron(0, {})), "master-cast").empty());
}

TEST_CASE("master copies: a shift of several tiles is an error, and repair shifts them back") {
  for (std::size_t by : {5u, 8u, 19u}) {
    CAPTURE(by);
    TemporaryFolder folder;
    auto checkpoint = made(folder / "a", megatron(by, {1, 3}));
    auto findings = found_in(*checkpoint, "master-cast");
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].severity == Severity::kError);
    CHECK(findings[0].subjects == std::vector<std::string>{"optimizer.state.param." + layer(1),
                                                           "optimizer.state.param." + layer(3)});
    CHECK(evidence<std::int64_t>(findings[0], "shift") == static_cast<std::int64_t>(by));
    CheckOptions options;
    options.depth = Depth::kData;
    auto report = check(*checkpoint, options);
    REQUIRE(report.has_value());
    auto plan = make_plan(*checkpoint, *report, {});
    REQUIRE(plan.has_value());
    auto repaired = apply_plan(*checkpoint, *plan, {folder / "out"});
    if (!repaired) FAIL(repaired.error().message);
    auto after = open_checkpoint(folder / "out");
    REQUIRE(after.has_value());
    CHECK(found_in(**after, "master-cast").empty());
    auto whole = made(folder / "whole", megatron(0, {}));
    // The shifted values are in place again, bit for bit.
    for (const char* kind : {"param.", "exp_avg.", "exp_avg_sq."}) {
      const std::string fqn = std::string("optimizer.state.") + kind + layer(3);
      auto mended = read_tensor(**after, *(*after)->find(fqn));
      auto wanted = read_tensor(*whole, *whole->find(fqn));
      REQUIRE(mended.has_value());
      REQUIRE(wanted.has_value());
      CHECK(std::equal(mended->bytes.begin() + static_cast<std::ptrdiff_t>(4 * by),
                       mended->bytes.end(),
                       wanted->bytes.begin() + static_cast<std::ptrdiff_t>(4 * by)));
    }
  }
}

TEST_CASE("optimizer groups: parameters in flattened groups without states are named") {
  auto model_with = [](const std::vector<std::string>& states,
                       const std::vector<std::string>& groups) {
    MadeModel model;
    for (const char* name : {"a", "b", "c", "d"}) {
      const std::string fqn = std::string(name) + ".weight";
      model.add("model." + fqn, Dtype::kFloat32, {4}, distinct(4));
      const bool has_state = std::find(states.begin(), states.end(), name) != states.end();
      const Moments moments = trained(4, 100, 0.9, 0.999);
      if (has_state)
        model.add("optim.state." + fqn + ".exp_avg", Dtype::kFloat32, {4}, moments.mean);
      if (has_state)
        model.add("optim.state." + fqn + ".exp_avg_sq", Dtype::kFloat32, {4}, moments.square);
      if (std::find(groups.begin(), groups.end(), name) == groups.end()) continue;
      model.entries.push_back({"optim.param_groups." + fqn + ".lr", pickled_real(0.001)});
    }
    return model;
  };
  TemporaryFolder folder;
  auto found = found_in(*made(folder / "a", model_with({"a", "b", "c"}, {"a", "b", "c", "d"})),
                        "optimizer-groups", Depth::kHeaders);
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::kWarning);
  CHECK(found[0].subjects == std::vector<std::string>{"model.d.weight"});
  // Frozen parameters are in no group, or are most of the model.
  CHECK(found_in(*made(folder / "b", model_with({"a", "b", "c"}, {"a", "b", "c"})),
                 "optimizer-groups", Depth::kHeaders)
            .empty());
  CHECK(found_in(*made(folder / "c", model_with({"a"}, {"a", "b", "c", "d"})), "optimizer-groups",
                 Depth::kHeaders)
            .empty());
}
