// Optimizer states that are converted by a map: each weight of the pair in data/README.md gets
// moments that are casts of the weight, so that the expected result is known.
#include "core/maps/carried_states.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/compare/tensor_hashes.h"
#include "core/formats/open.h"
#include "core/maps/choose_map.h"
#include "core/transform/target_view.h"

using namespace shw;

namespace {

using Seen = std::shared_ptr<const Checkpoint>;

Seen as_view(const Seen& source, const std::vector<Step>& steps) {
  auto all = apply_steps(target_state_of(source), steps, nullptr);
  REQUIRE_MESSAGE(all.has_value(), all.error().message);
  auto view = target_view(std::make_shared<const TargetState>(std::move(*all)), nullptr);
  REQUIRE_MESSAGE(view.has_value(), view.error().message);
  return *view;
}

Seen hugging_face() {
  auto checkpoint =
      open_checkpoint(std::string(SHW_SOURCE_DIR) + "/tests/core/maps/data/llama3/hf");
  REQUIRE(checkpoint.has_value());
  return *checkpoint;
}

MappedSteps steps_to(const Seen& source, const std::string& world,
                     const ConversionExclusions& leave_out = {},
                     const std::vector<std::string>& forms = {}) {
  ModelFacts facts = facts_in_folder(*hugging_face());
  facts.forms_named_by_user = forms;
  auto mapped = mapped_steps(*source, nullptr, world, facts, leave_out);
  REQUIRE_MESSAGE(mapped.has_value(), mapped.error().message);
  return std::move(*mapped);
}
Seen in_world(const Seen& source, const std::string& world,
              const std::vector<std::string>& forms = {}) {
  return as_view(source, steps_to(source, world, {}, forms).steps);
}

// "FQN dtype shape hash", sorted.
std::vector<std::string> lines_of(const Seen& checkpoint) {
  std::vector<TensorId> tensors;
  for (TensorId tensor : checkpoint->tensors()) tensors.push_back(tensor);
  auto hashes = tensor_hashes(*checkpoint, tensors, std::uint64_t{1} << 20, nullptr);
  REQUIRE(hashes.has_value());
  std::vector<std::string> lines;
  for (const TensorHash& hash : *hashes) {
    REQUIRE(hash.fingerprint.has_value());
    lines.push_back(hash.fqn + " " + std::string(name(hash.dtype)) + " " + to_text(hash.shape) +
                    " " + std::to_string(hash.fingerprint->a) + " " +
                    std::to_string(hash.fingerprint->b));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

// How a program names the states of a weight.
struct Naming {
  std::string before;              // in front of all
  std::string weight_prefix = {};  // of weights but not of their states
  bool is_state_first = false;
};
const Naming kTitanNames{"optimizer.state."};
const Naming kMegatronNames{"optimizer.state.", {}, true};
const Naming kFsdpNames{"optimizer.state.module.module.module.", "model.module."};

// The weights with states: each exp_avg and master is the weight in float32, and each exp_avg_sq is
// the weight in float64.
Seen with_states(const Seen& weights, const Naming& naming, bool has_masters) {
  std::vector<std::pair<std::string, Dtype>> kinds{{"exp_avg", Dtype::kFloat32},
                                                   {"exp_avg_sq", Dtype::kFloat64}};
  if (has_masters) kinds.emplace_back("param", Dtype::kFloat32);
  std::vector<Step> steps;
  for (TensorId tensor : weights->tensors()) {
    const std::string fqn(weights->fqn(tensor));
    const std::string bare = fqn.substr(naming.weight_prefix.size());
    for (const auto& [kind, dtype] : kinds) {
      const std::string state =
          naming.before + (naming.is_state_first ? kind + "." + bare : bare + "." + kind);
      steps.emplace_back(CopyStep{fqn, state});
      steps.emplace_back(CastStep{{state}, dtype});
    }
  }
  return as_view(weights, steps);
}
// A checkpoint of torchtitan, which has no masters.
Seen titan_with_moments() {
  return with_states(in_world(hugging_face(), "titan"), kTitanNames, false);
}

constexpr const char* kFusedParts[] = {"wq", "wk", "wv"};

// The states of each layer's wq, wk and wv as torchtitan's fused parameter wqkv has them: for each
// of the 2 groups its two heads of queries, its keys and its values, of 4 rows each.
Seen with_fused_states(const Seen& titan) {
  std::vector<Step> steps;
  for (const char* layer : {"0", "1"}) {
    for (const char* kind : {"exp_avg", "exp_avg_sq"}) {
      const std::string before =
          std::string("optimizer.state.layers.") + layer + ".attention.qkv_linear.";
      ConcatStep join{{}, 0, before + "wqkv.weight." + kind};
      for (const char* part : kFusedParts)
        join.tensors.push_back(before + part + ".weight." + kind);
      steps.emplace_back(join);
      steps.emplace_back(
          PermuteBlocksStep{{join.into}, 0, Extents(8, 4), {0, 1, 4, 6, 2, 3, 5, 7}});
    }
  }
  return as_view(titan, steps);
}

std::vector<std::string> names_of_tensors(const Seen& checkpoint) {
  std::vector<std::string> names;
  for (TensorId tensor : checkpoint->tensors()) names.emplace_back(checkpoint->fqn(tensor));
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const MapStates kTitan{"optimizer.state.{name}.{state}"};

}  // namespace

TEST_CASE("optimizer states: moments of torchtitan become those of Megatron, with masters") {
  const Seen weights = in_world(hugging_face(), "titan");
  const Seen megatron = in_world(with_states(weights, kTitanNames, false), "torch_dist");
  const Seen expected = with_states(in_world(weights, "torch_dist"), kMegatronNames, true);
  CHECK(lines_of(megatron) == lines_of(expected));
}

TEST_CASE("optimizer states: moments come back from Megatron as they were in torchtitan") {
  const Seen titan = titan_with_moments();
  const Seen megatron = in_world(titan, "torch_dist");
  CHECK(lines_of(in_world(megatron, "titan", {"apart"})) == lines_of(titan));
  CHECK(lines_of(in_world(megatron, "titan")) == lines_of(with_fused_states(titan)));
}

TEST_CASE("optimizer states: those of torchtitan's fused wqkv are divided as its weights are") {
  const Seen titan = titan_with_moments(), fused = with_fused_states(titan);
  for (const char* world : {"torch_dist", "fsdp_dtensor"}) {
    const MappedSteps mapped = steps_to(fused, world);
    CHECK(mapped.left_out_states.empty());
    CHECK(lines_of(as_view(fused, mapped.steps)) == lines_of(in_world(titan, world)));
  }
  const MappedSteps to_hf = steps_to(fused, "hf");
  CHECK(to_hf.left_out_states.size() == fused->tensor_count() - titan->tensor_count() / 3);
  CHECK(lines_of(as_view(fused, to_hf.steps)) == lines_of(hugging_face()));
}

TEST_CASE("optimizer states: a fused parameter of another shape than its weights is left out") {
  const Seen fused = with_fused_states(titan_with_moments());
  const std::string state = "optimizer.state.layers.1.attention.qkv_linear.wqkv.weight.exp_avg";
  const Seen cut = as_view(fused, {TrimStep{{state}, Box{{0, 0}, {31, 16}}}});
  const MappedSteps mapped = steps_to(cut, "torch_dist");
  // And those of layer 0, which are stacked with it: of queries, keys and values.
  REQUIRE(mapped.left_out_states.size() == 4);
  CHECK(mapped.left_out_states[0].fqn == state);
  CHECK(mapped.left_out_states[0].why == StateOmissionReason::kOtherShape);
  for (std::size_t i = 1; i < 4; ++i)
    CHECK(mapped.left_out_states[i].why == StateOmissionReason::kIncomplete);
}

TEST_CASE("optimizer states: a fused parameter is written where each of its weights has one") {
  const Seen megatron = in_world(titan_with_moments(), "fsdp_dtensor");
  const std::string gone =
      "optimizer.state.module.module.module.decoder.layers.1.self_attention.linear_qkv.weight."
      "exp_avg";
  const MappedSteps mapped = steps_to(as_view(megatron, {DropStep{{gone}}}), "titan");
  const auto names = names_of_tensors(as_view(as_view(megatron, {DropStep{{gone}}}), mapped.steps));
  const std::string before = "optimizer.state.layers.";
  CHECK(has(names, before + "0.attention.qkv_linear.wqkv.weight.exp_avg"));
  CHECK_FALSE(has(names, before + "1.attention.qkv_linear.wqkv.weight.exp_avg"));
  CHECK(has(names, before + "1.attention.qkv_linear.wqkv.weight.exp_avg_sq"));
  CHECK_FALSE(has(names, before + "1.attention.qkv_linear.wq.weight.exp_avg_sq"));
}

TEST_CASE("optimizer states: Megatron-FSDP gets moments and masters under its own names") {
  const Seen weights = in_world(hugging_face(), "torch_dist");
  const Seen megatron = with_states(weights, kMegatronNames, true);
  const Seen fsdp = in_world(megatron, "fsdp_dtensor");
  const Seen expected = with_states(in_world(weights, "fsdp_dtensor"), kFsdpNames, true);
  CHECK(lines_of(fsdp) == lines_of(expected));
  CHECK(lines_of(in_world(fsdp, "torch_dist")) == lines_of(megatron));
}

TEST_CASE("optimizer states: torchtitan has no place for master weights") {
  const Seen megatron = with_states(in_world(hugging_face(), "torch_dist"), kMegatronNames, true);
  const MappedSteps mapped = steps_to(megatron, "titan");
  CHECK(has(mapped.left_out, "optimizer.state.param.decoder.final_layernorm.weight"));
  CHECK(mapped.states.count("param") == 0);
  CHECK(mapped.states.at("exp_avg") == mapped.states.at("exp_avg_sq"));
}

TEST_CASE("optimizer states: Megatron's other optimizers name master weights their own way") {
  const Seen titan = titan_with_moments();
  const std::string norm = "decoder.final_layernorm.weight";
  const auto distributed = names_of_tensors(in_world(titan, "torch_dist"));
  CHECK(has(distributed, "optimizer.state.param." + norm));
  const Seen half = in_world(titan, "torch_dist", {"float16_optimizer"});
  CHECK(has(names_of_tensors(half), "optimizer.state.fp32_param." + norm));
  CHECK_FALSE(has(names_of_tensors(half), "optimizer.state.param." + norm));
  const auto full = names_of_tensors(in_world(titan, "torch_dist", {"fp32_optimizer"}));
  CHECK(full.size() == distributed.size() - distributed.size() / 4);
  // Each is read again.
  CHECK(lines_of(in_world(half, "titan", {"apart"})) == lines_of(titan));
  const Seen fsdp = in_world(half, "fsdp_dtensor");
  CHECK(has(names_of_tensors(fsdp), "optimizer.state.module.module.module." + norm + ".param"));
}

TEST_CASE("optimizer states: Hugging Face has no place for them, and each is named") {
  const Seen titan = titan_with_moments();
  const MappedSteps mapped = steps_to(titan, "hf");
  CHECK(mapped.states.empty());
  CHECK(mapped.left_out.size() == titan->tensor_count() / 3 * 2);
  CHECK(lines_of(as_view(titan, mapped.steps)) == lines_of(hugging_face()));
}

TEST_CASE("optimizer states: what --leave-out names is left out") {
  const Seen titan = titan_with_moments();
  const MappedSteps some = steps_to(titan, "torch_dist", {{"*.exp_avg_sq"}, false});
  CHECK(some.states.count("exp_avg") == 1);
  CHECK(some.states.count("exp_avg_sq") == 0);
  const MappedSteps none = steps_to(titan, "torch_dist", {{}, true});
  CHECK(none.states.empty());
  const auto names = names_of_tensors(as_view(titan, none.steps));
  CHECK(std::none_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.starts_with("optim"); }));
}

TEST_CASE("optimizer states: a joined weight of which one part has no moment has none") {
  const Seen titan = titan_with_moments();
  const std::string gone = "optimizer.state.layers.1.attention.qkv_linear.wk.weight.exp_avg";
  const Seen cut = as_view(titan, {DropStep{{gone}}});
  const MappedSteps mapped = steps_to(cut, "fsdp_dtensor");
  const auto names = names_of_tensors(as_view(cut, mapped.steps));
  const std::string joined = "optimizer.state.module.module.module.decoder.layers.";
  CHECK(has(names, joined + "0.self_attention.linear_qkv.weight.exp_avg"));
  CHECK_FALSE(has(names, joined + "1.self_attention.linear_qkv.weight.exp_avg"));
  CHECK(has(names, joined + "1.self_attention.linear_qkv.weight.exp_avg_sq"));
}

TEST_CASE("optimizer states: one of another shape, or of no weight, does not go through") {
  const std::vector<MapTensor> tensors{{"norm.weight", {4}},
                                       {"optimizer.state.norm.weight.exp_avg", {4}},
                                       {"optimizer.state.norm.weight.exp_avg_sq", {2, 2}},
                                       {"optimizer.state.norm.weight.step", {}},
                                       {"optimizer.state.output.weight.exp_avg", {4}}};
  const CarriedStates states = find_states(tensors, kTitan, {});
  REQUIRE(states.by_kind.size() == 1);
  CHECK(states.by_kind.at("exp_avg").at("norm.weight") == "optimizer.state.norm.weight.exp_avg");
  CHECK(states.left_out.size() == 3);
}

TEST_CASE("optimizer states: the state of a tied weight is taken once") {
  const std::string embedding = "optimizer.state.tok_embeddings.weight.exp_avg";
  const std::string head = "optimizer.state.lm_head.weight.exp_avg";
  BoundMap weights;
  weights.way = MapDirection::kBack;
  weights.omitted_copies = {{"lm_head.weight", "tok_embeddings.weight"}};
  weights.rows.push_back({.to = {"tok_embeddings.weight"},
                          .from = {{"model.embed_tokens.weight"}},
                          .from_shapes = {{4, 2}},
                          .to_shapes = {{4, 2}}});
  const std::vector<MapTensor> both{
      {"tok_embeddings.weight", {4, 2}}, {"lm_head.weight", {4, 2}}, {embedding, {4, 2}}};
  for (const bool has_both : {false, true}) {
    std::vector<MapTensor> tensors = both;
    if (has_both) tensors.push_back({head, {4, 2}});
    if (!has_both) tensors.back().fqn = head;  // only under the name of the copy
    CarriedStates states = find_states(tensors, kTitan, {});
    const auto bound = bind_states({}, weights, &kTitan, states);
    REQUIRE(bound.size() == 1);
    REQUIRE(bound.front().rows.size() == 1);
    CHECK(bound.front().rows.front().to.front() == (has_both ? embedding : head));
    CHECK(states.left_out.size() == (has_both ? 1U : 0U));
  }
}

TEST_CASE("optimizer states: a cast and padding of ones change weights, not moments") {
  BoundMap weights;
  BoundOp pad{.kind = MapOp::Kind::kPad};
  pad.value = 1;
  weights.rows.push_back(
      {.to = {"b"}, .from = {{"a"}}, .ops = {{.kind = MapOp::Kind::kCast}, pad}});
  CarriedStates states;
  states.by_kind = {{"exp_avg", {{"a", "optimizer.state.a.exp_avg"}}},
                    {"param", {{"a", "optimizer.state.a.param"}}}};
  const MapStates target{"optimizer.state.{state}.{name}", "param"};
  for (const BoundMap& bound : bind_states({}, weights, &target, states)) {
    REQUIRE(bound.rows.front().ops.size() == 1);
    const bool is_moment = bound.rows.front().to.front() == "optimizer.state.exp_avg.b";
    CHECK(bound.rows.front().ops.front().value == (is_moment ? 0 : 1));
  }
}
