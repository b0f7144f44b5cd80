#include "core/formats/dcp/megatron_new.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <utility>

#include "core/formats/pickle/pickle.h"
#include "core/rules/make_contents.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

namespace {

// Two parameters as torchtitan saves them; `seen`: steps of the second one.
MadeModel two_parameters(double seen) {
  MadeModel model;
  for (const char* key : {"a.weight", "b.weight"}) {
    model.add(key, Dtype::kFloat32, {2}, {1, 2});
    model.pair(key, {2}, {0.5, 1}, {1, 4});
    const std::string group = std::string("optimizer.param_groups.") + key;
    model.entries.push_back({group + ".lr", pickled_real(0.001)});
    model.entries.push_back({group + ".betas", pickled_pair(0.9, 0.95)});
    model.entries.push_back({group + ".eps", pickled_real(1e-8)});
    model.entries.push_back({group + ".weight_decay", pickled_real(0.1)});
  }
  model.step("a.weight", 250);
  model.step("b.weight", seen);
  return model;
}

}  // namespace

TEST_CASE("Megatron's optimizer: settings are those that all parameters agree on") {
  TemporaryFolder folder;
  const auto settings = adam_settings(*made(folder / "same", two_parameters(250)));
  REQUIRE(settings.has_value());
  CHECK(settings->step == 250);
  CHECK(settings->beta1 == 0.9);
  CHECK(settings->beta2 == 0.95);
  CHECK(settings->eps == 1e-8);
  CHECK(settings->lr == 0.001);
  CHECK(settings->weight_decay == 0.1);
  CHECK_FALSE(adam_settings(*made(folder / "apart", two_parameters(249))));
  MadeModel lacking = two_parameters(250);
  std::erase_if(lacking.entries, [](const MadeEntry& one) { return one.fqn.ends_with(".eps"); });
  CHECK_FALSE(adam_settings(*made(folder / "lacking", lacking)));
  MadeModel amsgrad = two_parameters(250);
  amsgrad.entries.push_back({"optimizer.param_groups.a.weight.amsgrad", pickled_real(1)});
  CHECK_FALSE(adam_settings(*made(folder / "amsgrad", amsgrad)));
}

TEST_CASE("Megatron's optimizer: a group for each pair that its loader looks for") {
  const std::string pickle =
      "\x80\x02" + pickled_optimizer({250, 0.001, 0.9, 0.95, 1e-8, 0.1}) + ".";
  const Bytes bytes = to_bytes(pickle);
  const auto tree = decode_pickle(bytes, "common.pt");
  REQUIRE(tree.has_value());
  const NodeId groups = tree->find(tree->find(tree->root(), "optimizer"), "param_groups");
  REQUIRE(tree->items(groups).size() == 4);
  std::set<std::pair<double, std::int64_t>> kinds;
  for (const NodeId group : tree->items(groups)) {
    const double decay = tree->real(tree->find(group, "wd_mult")).value();
    kinds.emplace(decay, tree->integer(tree->find(group, "is_expert_parallel")).value());
    CHECK(tree->real(tree->find(group, "step")) == 250);
    CHECK(tree->real(tree->find(group, "weight_decay")) == decay * 0.1);
    CHECK(tree->items(tree->find(group, "betas")).size() == 2);
  }
  CHECK(kinds.size() == 4);
  CHECK(tree->text(tree->find(tree->root(), "param_state_sharding_type")) == "fully_reshardable");
}

TEST_CASE("Megatron's optimizer: without distribution it has the groups of its parameters alone") {
  PickledOptimizerOptions options{MegatronOptimizer::kFloat16};
  auto tree_of = [&](Bytes& bytes) {
    bytes =
        to_bytes("\x80\x02" + pickled_optimizer({250, 0.001, 0.9, 0.95, 1e-8, 0.1}, options) + ".");
    auto tree = decode_pickle(bytes, "common.pt");
    REQUIRE(tree.has_value());
    return std::move(*tree);
  };
  Bytes bytes;
  const PickleTree two = tree_of(bytes);
  const NodeId adam = two.find(two.root(), "optimizer");
  CHECK(two.items(two.find(adam, "param_groups")).size() == 2);
  CHECK(two.kind(two.find(adam, "state")) == NodeKind::kAbsent);
  CHECK(two.kind(two.find(two.root(), "param_state_sharding_type")) == NodeKind::kAbsent);

  options = {MegatronOptimizer::kFloat32, {true, false}, {false, false}, true};
  const PickleTree one = tree_of(bytes);
  CHECK(one.items(one.find(one.root(), "param_groups")).size() == 1);
  CHECK(one.real(one.find(one.find(one.root(), "state"), "common_step")) == 250);

  options = {};
  options.is_expert_parallel = true;
  const PickleTree chained = tree_of(bytes);
  REQUIRE(chained.items(chained.root()).size() == 4);  // {0: dense, 1: experts}
  for (const std::size_t value : {1U, 3U}) {
    const NodeId one_of_two = chained.items(chained.root())[value];
    const NodeId groups = chained.find(chained.find(one_of_two, "optimizer"), "param_groups");
    for (const NodeId group : chained.items(groups))
      CHECK(chained.integer(chained.find(group, "is_expert_parallel")) == (value == 3 ? 1 : 0));
  }
}
