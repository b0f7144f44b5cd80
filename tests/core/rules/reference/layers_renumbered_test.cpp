// N10: layers with the numbers of another stage, which are renamed if the bytes prove it.
#include <doctest/doctest.h>

#include <set>

#include "core/facts/names/layer_numbers.h"
#include "core/rules/reference/against_support.h"

using namespace shw;

namespace {

const Extents kMatrix{4, 3}, kVector{3};

Values content(std::int64_t layer, std::int64_t what, const Extents& shape) {
  Values values = counting(shape);
  for (std::int64_t& value : values) value += 1000 * layer + 100 * what;
  return values;
}

std::string layer_name(std::int64_t layer) {
  return "layers." + std::to_string(layer) + ".";
}

struct Options {
  bool states = true;
  std::string prefix = "model.";
};

// Layer `real` with the number `number`, written by the ranks from `rank` on.
void add_layer(std::vector<MadeTensor>& tensors, std::int64_t real, std::int64_t number,
               std::uint32_t rank, const Options& options = {}) {
  std::string own = layer_name(number), name = options.prefix + own;
  auto add = [&](const std::string& fqn, std::int64_t what, const Extents& shape) {
    tensors.push_back(cut_in_rows(fqn, shape, content(real, what, shape), 2, rank));
  };
  add(name + "attn.weight", 1, kMatrix);
  add(name + "mlp.weight", 2, kMatrix);
  add(name + "norm.weight", 3, kVector);
  if (!options.states) return;
  add("optim.state." + own + "attn.weight.exp_avg", 4, kMatrix);
  add("optim.state." + own + "mlp.weight.exp_avg", 5, kMatrix);
}

std::vector<MadeTensor> whole_model(std::int64_t layers, const Options& options = {}) {
  std::vector<MadeTensor> tensors;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    add_layer(tensors, layer, layer, 0, options);
  return tensors;
}

// Everything of layer `real` must have the name of `number` afterwards.
void must_be(const Checkpoint& checkpoint, std::int64_t real, const Options& options = {}) {
  std::string name = options.prefix + layer_name(real);
  CHECK(values_of(checkpoint, name + "attn.weight") == content(real, 1, kMatrix));
  CHECK(values_of(checkpoint, name + "mlp.weight") == content(real, 2, kMatrix));
  CHECK(values_of(checkpoint, name + "norm.weight") == content(real, 3, kVector));
  if (!options.states) return;
  std::string state = "optim.state." + layer_name(real);
  CHECK(values_of(checkpoint, state + "attn.weight.exp_avg") == content(real, 4, kMatrix));
  CHECK(values_of(checkpoint, state + "mlp.weight.exp_avg") == content(real, 5, kMatrix));
}

}  // namespace

TEST_CASE("layers that changed places get their names back, states and all") {
  // Two stages of an interleaved pipeline: 0 1 2 3 were saved as 0 2 1 3, or shifted by one round.
  for (const auto& order : {std::vector<std::int64_t>{0, 2, 1, 3}, {1, 2, 3, 0}, {2, 3, 0, 1}}) {
    for (bool states_in_reference : {true, false}) {
      TemporaryFolder folder;
      std::vector<MadeTensor> saved;
      for (std::size_t n = 0; n < order.size(); ++n)
        add_layer(saved, order[n], static_cast<std::int64_t>(n), 0);
      write_checkpoint(folder / "bad", saved);
      write_checkpoint(folder / "good", whole_model(4, {states_in_reference, "model."}));
      CheckReport report = held_against(folder / "bad", folder / "good");
      const Finding* finding = first_of(report, "layers-renumbered");
      REQUIRE(finding != nullptr);
      REQUIRE(finding->remedy.has_value());
      CHECK(finding->remedy->kind == "rename");
      CHECK(finding->remedy->lossless);
      CHECK(first_of(report, "missing-key") == nullptr);
      Plan plan = plan_for(folder / "bad", report);
      REQUIRE(plan.operations.size() == 1);
      CHECK(plan.operations[0].kind == OperationKind::kRename);
      CHECK(plan.undecided.empty());
      auto repaired = opened(repaired_into(folder / "bad", report, folder / "out"));
      for (std::int64_t layer = 0; layer < 4; ++layer) must_be(*repaired, layer);
      for (Depth depth : {Depth::kHeaders, Depth::kData}) {
        CheckReport again = held_against(folder / "out", folder / "good", depth);
        CHECK(count_above_info(again) == 0);
        CHECK(plan_for(folder / "out", again).empty());
      }
    }
  }
}

TEST_CASE("a later stage alone moves to its numbers, and the lost layers are named as missing") {
  TemporaryFolder folder;
  std::vector<MadeTensor> saved;
  for (std::int64_t n : {0, 1}) add_layer(saved, n + 2, n, 2);
  write_checkpoint(folder / "bad", saved);
  write_checkpoint(folder / "good", whole_model(4, {false, "module.model."}));
  CheckReport report = held_against(folder / "bad", folder / "good");
  const Finding* finding = first_of(report, "layers-renumbered");
  REQUIRE(finding != nullptr);
  REQUIRE(finding->remedy.has_value());
  CHECK_FALSE(finding->remedy->lossless);
  const Finding* missing = first_of(report, "missing-key");
  REQUIRE(missing != nullptr);
  for (const std::string& fqn : missing->subjects)
    CHECK(
        (fqn.find("layers.0.") != std::string::npos || fqn.find("layers.1.") != std::string::npos));
  auto repaired = opened(repaired_into(folder / "bad", report, folder / "out"));
  CHECK_FALSE(repaired->find("model.layers.0.mlp.weight").has_value());
  for (std::int64_t layer : {2, 3}) must_be(*repaired, layer);
}

TEST_CASE("where stages collided and their tensors were mixed, nothing is renamed") {
  TemporaryFolder folder;
  std::vector<MadeTensor> first, second, saved;
  for (std::int64_t n : {0, 1}) {
    add_layer(first, n, n, 0);
    add_layer(second, n + 2, n, 2);
  }
  // Deduplication kept one tensor per name, sometimes of this stage, sometimes of the other.
  for (std::size_t i = 0; i < first.size(); ++i) saved.push_back(i % 2 == 0 ? first[i] : second[i]);
  write_checkpoint(folder / "bad", saved);
  write_checkpoint(folder / "good", whole_model(4));
  CheckReport report = held_against(folder / "bad", folder / "good");
  const Finding* finding = first_of(report, "layers-renumbered");
  REQUIRE(finding != nullptr);
  CHECK(finding->diagnoses.empty());
  CHECK_FALSE(finding->remedy.has_value());
  CHECK(finding->cause.find("undecided") != std::string::npos);
  CHECK(plan_for(folder / "bad", report).empty());
}

TEST_CASE("a state that another stage's rank wrote does not follow, and then nothing does") {
  TemporaryFolder folder;
  std::vector<MadeTensor> saved, other;
  for (std::int64_t n : {0, 1}) add_layer(saved, n + 2, n, 2);
  add_layer(other, 0, 0, 0);
  for (MadeTensor& tensor : saved) {
    if (tensor.fqn == "optim.state.layers.0.mlp.weight.exp_avg") tensor = other.back();
  }
  write_checkpoint(folder / "bad", saved);
  write_checkpoint(folder / "good", whole_model(4, {false, "model."}));
  CheckReport report = held_against(folder / "bad", folder / "good");
  const Finding* finding = first_of(report, "layers-renumbered");
  REQUIRE(finding != nullptr);
  CHECK(finding->diagnoses.empty());
  CHECK(finding->cause.find("exp_avg") != std::string::npos);
}

TEST_CASE("contents that do not agree are not proof") {
  TemporaryFolder folder;
  std::vector<MadeTensor> saved;
  for (std::int64_t n : {0, 1, 2, 3}) add_layer(saved, (n + 2) % 4, n, 0, {false, "model."});
  for (MadeTensor& tensor : saved) {
    if (tensor.fqn == "model.layers.1.norm.weight") tensor.chunks[0].values[0] = -5;
  }
  write_checkpoint(folder / "bad", saved);
  write_checkpoint(folder / "good", whole_model(4, {false, "model."}));
  CheckReport report = held_against(folder / "bad", folder / "good");
  const Finding* finding = first_of(report, "layers-renumbered");
  REQUIRE(finding != nullptr);
  CHECK(finding->diagnoses.empty());
  CHECK(finding->cause.find("model.layers.1.norm.weight") != std::string::npos);
}

TEST_CASE("healthy layers, equal layers, deeper models and stages of their own raise nothing") {
  Options bare{false, "model."};
  std::vector<MadeTensor> model = whole_model(4, bare), later = model, equal = model,
                          deeper = model;
  for (MadeTensor& tensor : later) {
    for (MadeChunk& chunk : tensor.chunks) {
      for (std::int64_t& value : chunk.values) value += 7;
    }
  }
  for (MadeTensor& tensor : equal) {  // a fresh adapter: all layers are equal
    for (MadeChunk& chunk : tensor.chunks) std::fill(chunk.values.begin(), chunk.values.end(), 0);
  }
  for (std::int64_t layer : {1, 2, 3}) add_layer(deeper, layer, layer + 3, 0, bare);
  std::vector<MadeTensor> unique;
  std::set<std::string> seen;
  for (MadeTensor& tensor : deeper) {
    if (seen.insert(tensor.fqn).second) unique.push_back(tensor);
  }
  std::vector<MadeTensor> stages;
  for (std::int64_t layer = 0; layer < 4; ++layer)
    add_layer(stages, layer, layer % 2, 0, {false, "model_pp" + std::to_string(layer / 2) + "."});
  struct Case {
    std::vector<MadeTensor> saved, reference;
  };
  for (const Case& one : {Case{model, model}, Case{later, model}, Case{equal, equal},
                          Case{equal, model}, Case{unique, model}, Case{stages, model}}) {
    TemporaryFolder folder;
    write_checkpoint(folder / "one", one.saved);
    write_checkpoint(folder / "other", one.reference);
    for (Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
      CheckReport report = held_against(folder / "one", folder / "other", depth);
      CHECK(first_of(report, "layers-renumbered") == nullptr);
    }
  }
}

TEST_CASE("constants do not say which layer they are of") {
  // Each layer is wider than the one before, and the saver kept half of each: layer 1 has the shape
  // and the values of layer 0.
  auto model = [](std::int64_t kept_of) {
    std::vector<MadeTensor> tensors;
    for (std::int64_t layer : {0, 1}) {
      const Extents matrix{4, (layer + 1) * 4 / kept_of};
      const std::string name = "model." + layer_name(layer);
      tensors.push_back(cut_in_rows(name + "mlp.weight", matrix, counting(matrix), 2, 0));
      tensors.push_back(cut_in_rows(name + "norm.weight", {4}, counting({4}), 2, 0));
    }
    for (MadeTensor& tensor : tensors) {
      for (MadeChunk& chunk : tensor.chunks) std::fill(chunk.values.begin(), chunk.values.end(), 1);
    }
    return tensors;
  };
  TemporaryFolder folder;
  write_checkpoint(folder / "half", model(2));
  write_checkpoint(folder / "whole", model(1));
  for (Depth depth : {Depth::kHeaders, Depth::kData}) {
    CheckReport report = held_against(folder / "half", folder / "whole", depth);
    CHECK(first_of(report, "layers-renumbered") == nullptr);
    CHECK(first_of(report, "shape-mismatch") != nullptr);
  }
}

TEST_CASE("a tensor that is right under its own name is none of another layer") {
  auto with_norms_of_ones = [](std::vector<MadeTensor> tensors) {
    for (MadeTensor& tensor : tensors) {
      if (tensor.fqn.find("norm") == std::string::npos) continue;
      for (MadeChunk& chunk : tensor.chunks) std::fill(chunk.values.begin(), chunk.values.end(), 1);
    }
    return tensors;
  };
  const Options bare{false, "model."};
  TemporaryFolder folder;
  std::vector<MadeTensor> exchanged;
  for (std::int64_t n : {0, 1}) add_layer(exchanged, 1 - n, n, 0, bare);
  write_checkpoint(folder / "good", with_norms_of_ones(whole_model(2, bare)));
  write_checkpoint(folder / "bad", with_norms_of_ones(exchanged));
  CheckReport report = held_against(folder / "bad", folder / "good");
  const Finding* finding = first_of(report, "layers-renumbered");
  REQUIRE(finding != nullptr);
  CHECK(finding->subjects.size() == 4);
  for (const std::string& fqn : finding->subjects) CHECK(fqn.find("norm") == std::string::npos);
  REQUIRE(finding->remedy.has_value());
  repaired_into(folder / "bad", report, folder / "out");
  CheckReport again = held_against(folder / "out", folder / "good", Depth::kData);
  CHECK(count_above_info(again) == 0);
}

TEST_CASE("a layer's number is changed wherever the layer's own name is, nowhere else") {
  LayerNumbers numbers{"model.layers.", {{0, 4}, {1, 5}}};
  auto named = [&](std::string_view name) {
    auto renamed = with_correct_layer_number(name, numbers);
    return renamed && renamed->known ? renamed->name : std::string("-");
  };
  CHECK(named("model.layers.0.mlp.w") == "model.layers.4.mlp.w");
  CHECK(named("optim.state.layers.1.mlp.w.exp_avg") == "optim.state.layers.5.mlp.w.exp_avg");
  CHECK(named("optimizer.state.module.module.model.layers.0.w.exp_avg") ==
        "optimizer.state.module.module.model.layers.4.w.exp_avg");
  CHECK(named("optimizer.state.exp_avg.model.layers.0.w") ==
        "optimizer.state.exp_avg.model.layers.4.w");
  CHECK(named("optim.param_groups.model.layers.1.w.lr") ==
        "optim.param_groups.model.layers.5.w.lr");
  CHECK(named("model.layers.0.attn._extra_state") == "model.layers.4.attn._extra_state");
  CHECK(named("model.layers.0.experts.1.w") == "model.layers.4.experts.1.w");
  CHECK(named("model.vision.layers.0.w") == "-");
  CHECK(named("model.layers.7.w") == "-");
  CHECK(named("optim.state.0.exp_avg") == "-");
  CHECK(named("model.norm.w") == "-");
}
