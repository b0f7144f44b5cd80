// The program's maps on tensors of small models: names and shapes as the libraries save them
// (transformers 5.24, megatron-core 0.16.1 and 0.19.2, torchtitan 0.3.0).
#include "core/maps/bind_map.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "core/maps/built_in_maps.h"
#include "core/maps/map_steps.h"

using namespace shw;

namespace {

using Tensors = std::vector<MapTensor>;

ModelFacts facts_of(ModelFacts::Sizes config, std::string model) {
  ModelFacts facts;
  facts.config = std::move(config);
  facts.model_type = std::move(model);
  return facts;
}

// 4 heads of 16 in 2 groups, hidden size 64, ffn 48, 121 words.
ModelFacts small_facts(const std::string& model) {
  return facts_of({{"num_hidden_layers", 2},
                   {"num_attention_heads", 4},
                   {"num_key_value_heads", 2},
                   {"head_dim", 16},
                   {"hidden_size", 64},
                   {"vocab_size", 121}},
                  model);
}

Tensors llama(bool is_moe = false) {
  Tensors out{{"model.embed_tokens.weight", {121, 64}},
              {"lm_head.weight", {121, 64}},
              {"model.norm.weight", {64}}};
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
    const std::string l = layer;
    out.insert(out.end(), {{l + "self_attn.q_proj.weight", {64, 64}},
                           {l + "self_attn.k_proj.weight", {32, 64}},
                           {l + "self_attn.v_proj.weight", {32, 64}},
                           {l + "self_attn.o_proj.weight", {64, 64}},
                           {l + "input_layernorm.weight", {64}},
                           {l + "post_attention_layernorm.weight", {64}}});
    if (is_moe) out.push_back({l + "mlp.gate.weight", {3, 64}});
    for (int e = 0; e < (is_moe ? 3 : 1); ++e) {
      const std::string m = l + "mlp." + (is_moe ? "experts." + std::to_string(e) + "." : "");
      out.insert(out.end(), {{m + "gate_proj.weight", {48, 64}},
                             {m + "up_proj.weight", {48, 64}},
                             {m + "down_proj.weight", {64, 48}}});
    }
  }
  return out;
}

bool by_name(const MapTensor& a, const MapTensor& b) {
  return a.fqn < b.fqn;
}

std::string listed(Tensors tensors) {
  std::sort(tensors.begin(), tensors.end(), by_name);
  std::string out;
  for (const MapTensor& tensor : tensors) out += tensor.fqn + " " + to_text(tensor.shape) + "\n";
  return out;
}

Extents shape_in(const Tensors& tensors, const std::string& fqn) {
  for (const MapTensor& tensor : tensors) {
    if (tensor.fqn == fqn) return tensor.shape;
  }
  return {};
}

Tensors through(const std::string& map, MapDirection way, const Tensors& tensors,
                const ModelFacts& facts) {
  auto found = map_named(map);
  REQUIRE(found);
  auto bound = bind_map(*found, way, tensors, facts);
  REQUIRE_MESSAGE(bound.has_value(), bound.error().message);
  CHECK(bound->without_row.empty());
  return tensors_after(*bound);
}

// Converts there and back, and returns the intermediate tensors too.
Tensors there_and_back(const std::string& map, const Tensors& tensors, const ModelFacts& facts) {
  const Tensors there = through(map, MapDirection::kForward, tensors, facts);
  CHECK(listed(through(map, MapDirection::kBack, there, facts)) == listed(tensors));
  return there;
}

}  // namespace

TEST_CASE("maps: a dense model becomes Megatron's stacked layers and comes back") {
  const Tensors there = there_and_back("hf-megatron", llama(), small_facts("llama"));
  CHECK(there.size() == 9);
  CHECK(shape_in(there, "decoder.layers.self_attention.linear_qkv.weight") == Extents{2, 128, 64});
  CHECK(shape_in(there, "decoder.layers.mlp.linear_fc1.weight") == Extents{2, 96, 64});
  CHECK(shape_in(there, "embedding.word_embeddings.weight") == Extents{128, 64});
}

TEST_CASE("maps: experts are stacked behind layers") {
  const Tensors there = there_and_back("hf-megatron", llama(true), small_facts("qwen3_moe"));
  CHECK(shape_in(there, "decoder.layers.mlp.experts.experts.linear_fc1.weight") ==
        Extents{2, 3, 96, 64});
  CHECK(shape_in(there, "decoder.layers.pre_mlp_layernorm.weight") == Extents{2, 64});
}

TEST_CASE("maps: layers that differ are numbered") {
  Tensors tensors = llama(true);
  const Tensors dense = llama();
  std::erase_if(tensors,
                [](const MapTensor& one) { return one.fqn.starts_with("model.layers.0.mlp."); });
  for (const MapTensor& one : dense) {
    if (one.fqn.starts_with("model.layers.0.mlp.")) tensors.push_back(one);
  }
  const Tensors there = there_and_back("hf-megatron", tensors, small_facts("glm4_moe"));
  CHECK(shape_in(there, "decoder.layers.0.mlp.linear_fc1.weight") == Extents{96, 64});
  CHECK(shape_in(there, "decoder.layers.1.mlp.experts.experts.linear_fc1.weight") ==
        Extents{3, 96, 64});
}

TEST_CASE("maps: forms are chosen by a person") {
  ModelFacts facts = small_facts("qwen3_moe");
  facts.forms_named_by_user = {"singleton", "local"};
  const Tensors there = there_and_back("hf-megatron", llama(true), facts);
  CHECK(shape_in(there, "decoder.layers.1.mlp.experts.experts.2.linear_fc1.weight_v") ==
        Extents{48, 64});
  CHECK(shape_in(there, "decoder.layers.1.mlp.linear_fc1.layer_norm_weight") == Extents{64});
}

TEST_CASE("maps: torchtitan and Megatron-FSDP come back as they were") {
  const Tensors titan = there_and_back("hf-titan", llama(), small_facts("llama"));
  CHECK(shape_in(titan, "layers.0.attention.qkv_linear.wk.weight") == Extents{32, 64});
  const Tensors fsdp = there_and_back("hf-fsdp_dtensor", llama(true), small_facts("qwen3_moe"));
  CHECK(shape_in(fsdp, "model.module.decoder.layers.0.mlp.experts.linear_fc1.weight2_w") ==
        Extents{48, 64});
}

TEST_CASE("maps: tied weights are one tensor for Hugging Face and two for torchtitan") {
  Tensors tensors = llama();
  std::erase_if(tensors, [](const MapTensor& one) { return one.fqn == "lm_head.weight"; });
  ModelFacts facts = small_facts("llama");
  facts.config["tie_word_embeddings"] = 1;
  const Tensors there = there_and_back("hf-titan", tensors, facts);
  CHECK(shape_in(there, "lm_head.weight") == Extents{121, 64});
}

TEST_CASE("maps: layers for several tokens get their copies of the embedding back") {
  Tensors tensors = llama();
  for (MapTensor one : llama()) {
    if (!one.fqn.starts_with("model.layers.0.")) continue;
    one.fqn.replace(0, 15, "model.layers.2.");
    tensors.push_back(one);
  }
  tensors.insert(tensors.end(), {{"model.layers.2.enorm.weight", {64}},
                                 {"model.layers.2.hnorm.weight", {64}},
                                 {"model.layers.2.eh_proj.weight", {64, 128}},
                                 {"model.layers.2.shared_head.norm.weight", {64}},
                                 {"model.layers.2.embed_tokens.weight", {121, 64}},
                                 {"model.layers.2.shared_head.head.weight", {121, 64}}});
  const Tensors there = there_and_back("hf-megatron", tensors, small_facts("deepseek_v3"));
  CHECK(shape_in(there, "mtp.layers.0.eh_proj.weight") == Extents{64, 128});
  CHECK(shape_in(there, "mtp.layers.0.embed_tokens.weight").empty());
}

TEST_CASE("maps: Qwen3 keeps its layer for several tokens next to the model, without copies") {
  Tensors tensors = llama();
  for (MapTensor one : llama()) {
    if (!one.fqn.starts_with("model.layers.0.")) continue;
    one.fqn.replace(0, 15, "mtp.layers.0.");
    tensors.push_back(one);
  }
  tensors.insert(tensors.end(), {{"mtp.layers.0.self_attn.q_norm.weight", {16}},
                                 {"mtp.layers.0.self_attn.k_norm.weight", {16}},
                                 {"mtp.pre_fc_norm_embedding.weight", {64}},
                                 {"mtp.pre_fc_norm_hidden.weight", {64}},
                                 {"mtp.fc.weight", {64, 128}},
                                 {"mtp.norm.weight", {64}}});
  ModelFacts facts = small_facts("qwen3");
  const Tensors there = there_and_back("hf-megatron", tensors, facts);
  CHECK(shape_in(there, "mtp.layers.0.eh_proj.weight") == Extents{64, 128});
  CHECK(shape_in(there, "mtp.layers.0.transformer_layer.self_attention.linear_qkv.weight") ==
        Extents{128, 64});
  CHECK(shape_in(there, "mtp.layers.0.transformer_layer.mlp.linear_fc1.weight") == Extents{96, 64});
  facts.forms_named_by_user = {"singleton"};
  there_and_back("hf-megatron", tensors, facts);
}

TEST_CASE("maps: MiMo's layer for several tokens has the halves of its projection swapped") {
  Tensors tensors = llama();
  for (MapTensor one : llama()) {
    if (!one.fqn.starts_with("model.layers.0.")) continue;
    one.fqn.replace(0, 15, "model.mtp_layers.0.");
    tensors.push_back(one);
  }
  tensors.insert(tensors.end(), {{"model.mtp_layers.0.token_layernorm.weight", {64}},
                                 {"model.mtp_layers.0.hidden_layernorm.weight", {64}},
                                 {"model.mtp_layers.0.final_layernorm.weight", {64}},
                                 {"model.mtp_layers.0.input_proj.weight", {64, 128}}});
  ModelFacts facts = small_facts("mimo");
  const Tensors there = there_and_back("hf-megatron", tensors, facts);
  CHECK(shape_in(there, "mtp.layers.0.eh_proj.weight") == Extents{64, 128});
  CHECK(shape_in(there, "mtp.layers.0.transformer_layer.mlp.linear_fc1.weight") == Extents{96, 64});
  auto map = map_named("hf-megatron");
  REQUIRE(map.has_value());
  auto bound = bind_map(*map, MapDirection::kForward, tensors, facts);
  REQUIRE(bound.has_value());
  for (const BoundRow& row : bound->rows) {
    if (row.to.front() != "mtp.layers.0.eh_proj.weight") continue;
    REQUIRE(row.ops.size() == 1);
    CHECK(row.ops.front().order == Extents{1, 0});
  }
}

TEST_CASE("maps: Qwen3-Next's linear attention is cut by heads, and its queries have gates") {
  // 2 key heads of 8, 4 value heads of 12; the second layer has ordinary attention.
  Tensors tensors = llama(true);
  const std::string linear = "model.layers.0.linear_attn.";
  std::erase_if(tensors, [](const MapTensor& one) {
    return one.fqn.starts_with("model.layers.0.self_attn.") ||
           one.fqn == "model.layers.1.self_attn.q_proj.weight";
  });
  tensors.insert(tensors.end(), {{linear + "in_proj_qkvz.weight", {128, 64}},
                                 {linear + "in_proj_ba.weight", {8, 64}},
                                 {linear + "conv1d.weight", {80, 1, 4}},
                                 {linear + "A_log", {4}},
                                 {linear + "dt_bias", {4}},
                                 {linear + "norm.weight", {12}},
                                 {linear + "out_proj.weight", {64, 48}},
                                 {"model.layers.1.self_attn.q_proj.weight", {128, 64}}});
  ModelFacts facts = small_facts("qwen3_next");
  facts.config.insert({{"linear_num_key_heads", 2},
                       {"linear_key_head_dim", 8},
                       {"linear_num_value_heads", 4},
                       {"linear_value_head_dim", 12}});
  const Tensors there = there_and_back("hf-megatron", tensors, facts);
  const std::string attention = "decoder.layers.0.self_attention.";
  CHECK(shape_in(there, attention + "in_proj.weight.key") == Extents{16, 64});
  CHECK(shape_in(there, attention + "in_proj.weight.z") == Extents{48, 64});
  CHECK(shape_in(there, attention + "in_proj.weight.alpha") == Extents{4, 64});
  CHECK(shape_in(there, attention + "conv1d.weight.value") == Extents{48, 1, 4});
  CHECK(shape_in(there, attention + "in_proj.layer_norm_weight") == Extents{64});
  CHECK(shape_in(there, "decoder.layers.1.self_attention.linear_qkv.weight") == Extents{192, 64});
  // Of the 8 blocks of 16 query rows, each head's queries are followed by its gate.
  auto map = map_named("hf-megatron");
  REQUIRE(map.has_value());
  const auto bound = bind_map(*map, MapDirection::kForward, tensors, facts);
  REQUIRE(bound.has_value());
  const auto row = std::find_if(bound->rows.begin(), bound->rows.end(), [](const BoundRow& one) {
    return one.to.front() == "decoder.layers.1.self_attention.linear_qkv.weight";
  });
  REQUIRE(row != bound->rows.end());
  REQUIRE(row->ops.size() == 2);
  CHECK(row->ops[0].view == Extents{2, 2, 2, 16});
  CHECK(row->ops[0].order == Extents{0, 2, 1, 3});
  CHECK(row->ops[1].parts == Extents{128, 32, 32});
}

TEST_CASE("maps: DeepSeek's layers for several tokens have names of their own in torchtitan") {
  Tensors tensors = llama(true);
  for (std::size_t i = tensors.size(); i-- > 0;) {
    if (tensors[i].fqn.find("self_attn") != std::string::npos)
      tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
    const std::string attention = std::string(layer) + "self_attn.";
    tensors.insert(tensors.end(), {{attention + "q_proj.weight", {96, 64}},
                                   {attention + "kv_a_proj_with_mqa.weight", {24, 64}},
                                   {attention + "kv_a_layernorm.weight", {16}},
                                   {attention + "kv_b_proj.weight", {128, 16}},
                                   {attention + "o_proj.weight", {64, 64}}});
  }
  const std::string last = "model.layers.1.";
  tensors.insert(tensors.end(), {{last + "enorm.weight", {64}},
                                 {last + "hnorm.weight", {64}},
                                 {last + "eh_proj.weight", {64, 128}},
                                 {last + "shared_head.norm.weight", {64}},
                                 {last + "embed_tokens.weight", {121, 64}},
                                 {last + "shared_head.head.weight", {121, 64}}});
  ModelFacts facts = small_facts("deepseek_v3");
  facts.config["num_hidden_layers"] = 1;
  const Tensors there = there_and_back("hf-titan", tensors, facts);
  CHECK(shape_in(there, "layers.0.attention.wq.weight") == Extents{96, 64});
  CHECK(shape_in(there, "mtp_layers.0.attention.wq.weight") == Extents{96, 64});
  CHECK(shape_in(there, "mtp_layers.0.mtp_norm.weight") == Extents{64});
  CHECK(shape_in(there, "mtp_layers.0.moe.routed_experts.inner_experts.w2_EDF") ==
        Extents{3, 64, 48});
  CHECK(shape_in(there, "layers.1.attention.wq.weight").empty());
}

TEST_CASE("maps: a value that nothing says is asked for by its name") {
  const Tensors there =
      through("hf-megatron", MapDirection::kForward, llama(), small_facts("llama"));
  auto map = map_named("hf-megatron");
  REQUIRE(map);
  auto bound = bind_map(*map, MapDirection::kBack, there, ModelFacts{});
  REQUIRE_FALSE(bound);
  CHECK(bound.error().kind == ErrorKind::kUsage);
  CHECK(bound.error().advice.find("--set") != std::string::npos);
}

TEST_CASE("maps: a shape that does not fit its row is refused") {
  ModelFacts facts = small_facts("llama");
  facts.config["head_dim"] = 24;
  auto map = map_named("hf-megatron");
  REQUIRE(map);
  const Tensors tensors = llama();
  auto bound = bind_map(*map, MapDirection::kForward, tensors, facts);
  REQUIRE_FALSE(bound);
  CHECK(bound.error().kind == ErrorKind::kUnsupported);
}

TEST_CASE("maps: prefixes of wrappers are taken off and what has no row is listed") {
  Tensors tensors = llama();
  for (MapTensor& one : tensors) one.fqn.insert(0, "module.");
  tensors[3].fqn = "module.model.layers.0.self_attn._orig_mod.q_proj.weight";
  tensors.push_back({"module.model.layers.0.surprise", {1}});
  auto map = map_named("hf-megatron");
  REQUIRE(map);
  auto bound = bind_map(*map, MapDirection::kForward, tensors, small_facts("llama"));
  REQUIRE(bound);
  CHECK(bound->without_row == std::vector<std::string>{"model.layers.0.surprise"});
  CHECK(bound->rows.size() == 9);
}

TEST_CASE("maps: norms behind attention do not become the norms before the MLP") {
  Tensors olmo = llama();
  for (MapTensor& tensor : olmo) {
    const std::size_t at = tensor.fqn.find("input_layernorm");
    if (at != std::string::npos) tensor.fqn.replace(at, 15, "post_feedforward_layernorm");
  }
  for (const char* map : {"hf-megatron", "hf-fsdp_dtensor"}) {
    CAPTURE(map);
    const Tensors there = there_and_back(map, olmo, small_facts("olmo2"));
    const Tensors plain = there_and_back(map, llama(), small_facts("llama"));
    auto has_norm = [](const Tensors& tensors, const std::string& end) {
      return std::any_of(tensors.begin(), tensors.end(),
                         [&](const MapTensor& one) { return one.fqn.ends_with(end); });
    };
    CHECK(has_norm(there, "self_attention.linear_proj.post_layernorm.weight"));
    CHECK_FALSE(has_norm(there, "mlp.linear_fc1.layer_norm_weight"));
    CHECK_FALSE(has_norm(plain, "self_attention.linear_proj.post_layernorm.weight"));
    CHECK(has_norm(plain, "mlp.linear_fc1.layer_norm_weight"));
  }
}

TEST_CASE("maps: torchtitan gets rotary pairs that are neighbours as they are") {
  const auto titan = map_named("hf-titan");
  REQUIRE(titan.has_value());
  for (const char* model : {"llama", "ernie4_5"}) {
    CAPTURE(model);
    const ModelFacts facts = small_facts(model);
    const auto bound = bind_map(*titan, MapDirection::kForward, llama(), facts);
    REQUIRE(bound.has_value());
    const bool is_llama = std::string_view(model) == "llama";
    std::size_t permuted = 0;
    for (const BoundRow& row : bound->rows) permuted += row.ops.size();
    CHECK(permuted == (is_llama ? 4U : 0U));  // queries and keys of two layers
    there_and_back("hf-titan", llama(), facts);
  }
}

TEST_CASE("maps: Granite's stacked experts and MiniMax's bias come back under their own names") {
  Tensors granite = llama();
  std::erase_if(granite,
                [](const MapTensor& one) { return one.fqn.find(".mlp.") != std::string::npos; });
  for (const char* layer : {"model.layers.0.block_sparse_moe.", "model.layers.1.block_sparse_moe."})
    granite.insert(granite.end(), {{std::string(layer) + "router.layer.weight", {3, 64}},
                                   {std::string(layer) + "input_linear.weight", {3, 96, 64}},
                                   {std::string(layer) + "output_linear.weight", {3, 64, 48}}});
  const Tensors there = there_and_back("hf-megatron", granite, small_facts("granitemoe"));
  CHECK(shape_in(there, "decoder.layers.mlp.experts.experts.linear_fc1.weight") ==
        Extents{2, 3, 96, 64});
  CHECK(shape_in(there, "decoder.layers.pre_mlp_layernorm.weight") == Extents{2, 64});

  Tensors minimax = llama();
  for (const char* layer : {"model.layers.0.", "model.layers.1."})
    minimax.push_back({std::string(layer) + "block_sparse_moe.e_score_correction_bias", {3}});
  const Tensors biased = there_and_back("hf-megatron", minimax, small_facts("minimax_m2"));
  CHECK(shape_in(biased, "decoder.layers.mlp.router.expert_bias") == Extents{2, 3});
}

TEST_CASE("maps: a prefix that trainers put before Hugging Face's names is taken off") {
  Tensors wrapped = llama();
  for (MapTensor& tensor : wrapped) tensor.fqn.insert(0, "model.");
  for (const char* map : {"hf-megatron", "hf-titan", "hf-fsdp_dtensor"})
    CHECK(listed(through(map, MapDirection::kForward, wrapped, small_facts("llama"))) ==
          listed(through(map, MapDirection::kForward, llama(), small_facts("llama"))));
}
