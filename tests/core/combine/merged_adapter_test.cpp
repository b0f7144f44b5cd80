// A base and a LoRA adapter in memory, in random tiles; the reference is the formula with loops.
#include "core/combine/merged_adapter.h"

#include <cmath>

#include "core/combine/combined_models.h"

using namespace shw;
using namespace shw::test;

namespace {

constexpr std::int64_t kOut = 6, kIn = 5, kRank = 2;
const std::string kRoot = "base_model.model.";
const std::string kModule = "model.layers.0.self_attn.q_proj";
const std::string kConfig =
    R"({"peft_type": "LORA", "r": 2, "lora_alpha": 3, "target_modules": ["q_proj"]})";

std::shared_ptr<const Checkpoint> adapter_of(const std::vector<TiledTensor>& tensors,
                                             const std::string& config = kConfig) {
  return laid(tensors, "adapter", 0, {}, {{"adapter_config.json", config}});
}

// sum over k of b[i, k] * a[k, j], times scale.
Numbers product(const Numbers& b, const Numbers& a, double scale, std::size_t rows,
                std::size_t rank, std::size_t columns) {
  Numbers out(rows * columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < rank; ++k) sum += double{b[i * rank + k]} * a[k * columns + j];
      out[i * columns + j] = static_cast<float>(scale * sum);
    }
  }
  return out;
}
Numbers plus_all(Numbers a, const Numbers& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}
Numbers turned_numbers(const Numbers& from, std::size_t rows, std::size_t columns) {
  Numbers to(from.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
  }
  return to;
}

struct Pair {
  Numbers weight, a, b;
};
Pair random_pair(std::mt19937& random) {
  return {random_numbers(kOut * kIn, random), random_numbers(kRank * kIn, random),
          random_numbers(kOut * kRank, random)};
}
std::vector<TiledTensor> matrices_of(const Pair& pair, const std::string& module = kModule) {
  return {numbers_tensor(kRoot + module + ".lora_A.weight", {kRank, kIn}, pair.a),
          numbers_tensor(kRoot + module + ".lora_B.weight", {kOut, kRank}, pair.b)};
}
std::shared_ptr<const Checkpoint> base_of(const Pair& pair, const std::string& module = kModule) {
  return laid({numbers_tensor(module + ".weight", {kOut, kIn}, pair.weight),
               numbers_tensor("model.norm.weight", {4}, {1, 2, 3, 4})},
              "base");
}

std::shared_ptr<const Checkpoint> merged(const std::shared_ptr<const Checkpoint>& base,
                                         const std::shared_ptr<const Checkpoint>& adapter) {
  auto made = merge_adapter(base, adapter, nullptr);
  INFO((made ? std::string() : made.error().message));
  REQUIRE(made.has_value());
  return *made;
}

}  // namespace

TEST_CASE("merged_adapter: W + scale B A, in any tiles and dtypes") {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    const Dtype dtype = std::array{Dtype::kFloat32, Dtype::kBfloat16,
                                   Dtype::kFloat16}[static_cast<std::size_t>(round % 3)];
    Pair pair = random_pair(random);
    pair.weight = rounded(pair.weight, dtype);
    TiledTensor weight = numbers_tensor(kModule + ".weight", {kOut, kIn}, pair.weight, dtype);
    weight.tiles = random_tiles(weight.shape, random);
    std::vector<TiledTensor> matrices = matrices_of(pair);
    for (TiledTensor& matrix : matrices) matrix.tiles = random_tiles(matrix.shape, random);
    const auto made =
        merged(laid({weight, numbers_tensor("other.weight", {2}, {1, 2})}), adapter_of(matrices));
    const Numbers expected = plus_all(pair.weight, product(pair.b, pair.a, 1.5, kOut, kRank, kIn));
    CHECK(made->dtype(*made->find(kModule + ".weight")) == dtype);
    check_near(numbers_of(*made, kModule + ".weight"), expected,
               dtype == Dtype::kFloat32   ? 1e-6
               : dtype == Dtype::kFloat16 ? 1e-3
                                          : 8e-3);
    CHECK(numbers_of(*made, "other.weight") == Numbers{1, 2});
    CHECK(made->tensor_count() == 2);
  }
}

TEST_CASE("merged_adapter: the scale is alpha / r, that of a pattern, or alpha / sqrt(r)") {
  std::mt19937 random(8);
  const Pair pair = random_pair(random);
  const std::vector<std::pair<std::string, double>> cases = {
      {R"({"r": 2, "lora_alpha": 3})", 1.5},
      {R"({"r": 2, "lora_alpha": 3, "use_rslora": true})", 3 / std::sqrt(2.0)},
      {R"({"r": 8, "rank_pattern": {"q_proj": 2}, "lora_alpha": 3, "alpha_pattern": {"q_proj": 5}})",
       2.5},
      {R"({"r": 2, "lora_alpha": 3, "alpha_pattern": {"v_proj": 5}})", 1.5}};
  for (const auto& [config, scale] : cases) {
    CAPTURE(config);
    const auto made = merged(base_of(pair), adapter_of(matrices_of(pair), config));
    check_near(numbers_of(*made, kModule + ".weight"),
               plus_all(pair.weight, product(pair.b, pair.a, scale, kOut, kRank, kIn)), 1e-6);
  }
}

TEST_CASE("merged_adapter: weights that are [in, out], by the config or by their shape") {
  std::mt19937 random(9);
  const Pair pair = random_pair(random);
  const Numbers turned = turned_numbers(pair.weight, kOut, kIn);
  const auto base = laid({numbers_tensor(kModule + ".weight", {kIn, kOut}, turned)});
  const Numbers expected = turned_numbers(
      plus_all(pair.weight, product(pair.b, pair.a, 1.5, kOut, kRank, kIn)), kOut, kIn);
  for (const char* said : {"true", "false"}) {
    const std::string config =
        R"({"r": 2, "lora_alpha": 3, "fan_in_fan_out": )" + std::string(said) + "}";
    const auto made = merged(base, adapter_of(matrices_of(pair), config));
    check_near(numbers_of(*made, kModule + ".weight"), expected, 1e-6);
  }
}

TEST_CASE("merged_adapter: DoRA gives each output its magnitude") {
  std::mt19937 random(10);
  const Pair pair = random_pair(random);
  const Numbers magnitudes{1, 2, 3, 4, 5, 6};
  std::vector<TiledTensor> tensors = matrices_of(pair);
  tensors.push_back(
      numbers_tensor(kRoot + kModule + ".lora_magnitude_vector.weight", {kOut}, magnitudes));
  const std::string config = R"({"r": 2, "lora_alpha": 3, "use_dora": true})";
  Numbers expected = plus_all(pair.weight, product(pair.b, pair.a, 1.5, kOut, kRank, kIn));
  for (std::size_t i = 0; i < kOut; ++i) {
    double squares = 0;
    for (std::size_t j = 0; j < kIn; ++j) squares += std::pow(expected[i * kIn + j], 2);
    for (std::size_t j = 0; j < kIn; ++j)
      expected[i * kIn + j] *= magnitudes[i] / static_cast<float>(std::sqrt(squares));
  }
  check_near(numbers_of(*merged(base_of(pair), adapter_of(tensors, config)), kModule + ".weight"),
             expected, 1e-5);
  // The transposed weight, in which a row has a part of every output.
  const auto base = laid(
      {numbers_tensor(kModule + ".weight", {kIn, kOut}, turned_numbers(pair.weight, kOut, kIn))});
  check_near(numbers_of(*merged(base, adapter_of(tensors, config)), kModule + ".weight"),
             turned_numbers(expected, kOut, kIn), 1e-5);
}

TEST_CASE("merged_adapter: embeddings, biases and modules that are saved whole") {
  std::mt19937 random(11);
  const Pair pair = random_pair(random);
  const std::string embedding = "model.embed_tokens";
  const Numbers table = random_numbers(8 * 4, random), ea = random_numbers(2 * 8, random),
                eb = random_numbers(4 * 2, random);
  const auto base = laid({numbers_tensor(kModule + ".weight", {kOut, kIn}, pair.weight),
                          numbers_tensor(kModule + ".bias", {kOut}, Numbers(kOut, 1)),
                          numbers_tensor(embedding + ".weight", {8, 4}, table),
                          numbers_tensor("lm_head.weight", {8, 4}, table, Dtype::kBfloat16)},
                         "base", 0, {}, {{"config.json", R"({"vocab_size": 8})"}});
  std::vector<TiledTensor> tensors = matrices_of(pair);
  tensors.push_back(numbers_tensor(kRoot + kModule + ".lora_B.bias", {kOut}, Numbers(kOut, 2)));
  tensors.push_back(numbers_tensor(kRoot + embedding + ".lora_embedding_A", {2, 8}, ea));
  tensors.push_back(numbers_tensor(kRoot + embedding + ".lora_embedding_B", {4, 2}, eb));
  tensors.push_back(numbers_tensor(kRoot + "lm_head.weight", {10, 4}, Numbers(40, 0.5f)));
  const auto made = merged(
      base, adapter_of(tensors, R"({"r": 2, "lora_alpha": 3, "modules_to_save": ["lm_head"]})"));
  check_near(numbers_of(*made, kModule + ".bias"), Numbers(kOut, 4), 1e-6);
  check_near(numbers_of(*made, embedding + ".weight"),
             plus_all(table, turned_numbers(product(eb, ea, 1.5, 4, 2, 8), 4, 8)), 1e-6);
  CHECK(numbers_of(*made, "lm_head.weight") == Numbers(40, 0.5f));
  CHECK(made->dtype(*made->find("lm_head.weight")) == Dtype::kBfloat16);
  // The vocabulary has grown, and the config is updated.
  auto config = made->directory()->open("config.json");
  REQUIRE(config.has_value());
  const Bytes text = read_bytes(**config, 0, (*config)->size()).value();
  CHECK(std::string(reinterpret_cast<const char*>(text.data()), text.size()).find("10") !=
        std::string::npos);
}

TEST_CASE("merged_adapter: a base whose names have another prefix") {
  std::mt19937 random(12);
  const Pair pair = random_pair(random);
  const Numbers expected = plus_all(pair.weight, product(pair.b, pair.a, 1.5, kOut, kRank, kIn));
  const std::string own = "model.language_model.layers.0.self_attn.q_proj";
  const auto made = merged(base_of(pair, own), adapter_of(matrices_of(pair)));
  check_near(numbers_of(*made, own + ".weight"), expected, 1e-6);
}

TEST_CASE("merged_adapter: what has no place or no known meaning is refused by name") {
  std::mt19937 random(13);
  const Pair pair = random_pair(random);
  const auto base = base_of(pair);
  const std::vector<TiledTensor> sound = matrices_of(pair);
  auto refused = [&](const std::vector<TiledTensor>& tensors, const std::string& config,
                     const std::shared_ptr<const Checkpoint>& of) {
    auto made = merge_adapter(of, adapter_of(tensors, config), nullptr);
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().kind == ErrorKind::kUnsupported);
    return made.error().place.tensor + ": " + made.error().message;
  };
  auto is_about = [](const std::string& text, const std::string& word) {
    CAPTURE(text);
    CHECK(text.find(word) != std::string::npos);
  };
  is_about(refused(sound, kConfig, base_of(pair, "model.layers.1.self_attn.q_proj")),
           kModule + ".weight");
  is_about(refused({sound[0]}, kConfig, base), "lora_A");
  is_about(refused(sound, R"({"r": 4, "lora_alpha": 3})", base), "rank");
  is_about(refused(sound, R"({"r": 2})", base), "lora_alpha");
  is_about(refused(sound, R"({"r": 2, "lora_alpha": 3, "alpha_pattern": {"^.*q_proj$": 1}})", base),
           "alpha_pattern");
  is_about(
      refused(sound, R"({"r": 2, "lora_alpha": 3, "init_lora_weights": "pissa_niter_4"})", base),
      "pissa");
  is_about(refused(sound, R"({"r": 2, "lora_alpha": 3, "use_dora": true})", base), "magnitude");
  is_about(refused(sound, R"({"r": 2, "lora_alpha": 3, "peft_type": "LOHA"})", base), "LOHA");
  is_about(refused(sound, R"({"r": 2, "lora_alpha": 3, "layer_replication": [[0, 1]]})", base),
           "layer_replication");
  std::vector<TiledTensor> more = sound;
  more.push_back(numbers_tensor(kRoot + "score.weight", {2}, {1, 2}));
  is_about(refused(more, kConfig, base), "score");
  more.back() = numbers_tensor(kRoot + kModule + ".ia3_l", {2}, {1, 2});
  is_about(refused(more, kConfig, base), "ia3_l");
  more.back() =
      numbers_tensor(kRoot + kModule + ".weight", {kOut, kIn + 1}, Numbers(kOut * (kIn + 1), 1));
  is_about(refused(more, kConfig, base), "in the base");
  TiledTensor other = numbers_tensor(kRoot + kModule + ".lora_B.weight", {kOut + 1, kRank},
                                     Numbers((kOut + 1) * kRank, 1));
  is_about(refused({sound[0], other}, kConfig, base), "do not make");
  CHECK_FALSE(merge_adapter(base, base, nullptr).has_value());
  CHECK_FALSE(merge_adapter(base, laid(sound), nullptr).has_value());  // without a config
}

TEST_CASE("merged_adapter: a base that is not whole is an error, not other numbers") {
  std::mt19937 random(14);
  const Pair pair = random_pair(random);
  const auto base =
      laid({numbers_tensor(kModule + ".weight", {kOut, kIn}, pair.weight)}, "base", 8);
  const auto made = merged(base, adapter_of(matrices_of(pair)));
  CHECK_FALSE(read_tensor(*made, *made->find(kModule + ".weight")).has_value());
}

TEST_CASE("merged_adapter: a pattern of whole names counts as PEFT counts it") {
  std::mt19937 random(21);
  const Pair pair = random_pair(random);
  const std::string config =
      R"({"r": 9, "lora_alpha": 9, "rank_pattern": {"^model.layers.0.self_attn.q_proj": 2},
          "alpha_pattern": {"^layers.0.self_attn.q_proj": 7, "layers\\.0\\.self_attn\\.q_proj$": 3}})";
  const Numbers expected = plus_all(pair.weight, product(pair.b, pair.a, 1.5, kOut, kRank, kIn));
  const auto made = merged(base_of(pair), adapter_of(matrices_of(pair), config));
  check_near(numbers_of(*made, kModule + ".weight"), expected, 1e-6);
}

TEST_CASE("merged_adapter: of three copies of a saved module its own counts") {
  std::mt19937 random(22);
  const Pair pair = random_pair(random);
  std::vector<TiledTensor> tensors = matrices_of(pair);
  const std::string head = kRoot + "classifier";
  tensors.push_back(numbers_tensor(head + ".original_module.bias", {2}, {1, 1}));
  tensors.push_back(numbers_tensor(head + ".modules_to_save.bias", {2}, {2, 2}));
  tensors.push_back(numbers_tensor(head + ".bias", {2}, {3, 4}));
  const auto made =
      merged(base_of(pair), adapter_of(tensors, R"({"r": 2, "lora_alpha": 3, "bias": "all",
                                                    "modules_to_save": ["classifier"]})"));
  CHECK(numbers_of(*made, "classifier.bias") == Numbers{3, 4});
}

TEST_CASE("merged_adapter: a new head is said in the config") {
  std::mt19937 random(23);
  const Pair pair = random_pair(random);
  std::vector<TiledTensor> tensors = matrices_of(pair);
  tensors.push_back(numbers_tensor(kRoot + "score.weight", {3, 2}, {1, 2, 3, 4, 5, 6}));
  const auto base = laid({numbers_tensor(kModule + ".weight", {kOut, kIn}, pair.weight)}, "base", 0,
                         {}, {{"config.json", R"({"architectures": ["LlamaForCausalLM"]})"}});
  const auto made =
      merged(base, adapter_of(tensors, R"({"r": 2, "lora_alpha": 3, "task_type": "SEQ_CLS",
                                           "modules_to_save": ["classifier", "score"]})"));
  auto config = made->directory()->open("config.json");
  REQUIRE(config.has_value());
  const Bytes bytes = read_bytes(**config, 0, (*config)->size()).value();
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  CHECK(text.find("LlamaForSequenceClassification") != std::string::npos);
  CHECK(text.find("LABEL_2") != std::string::npos);
  CHECK(text.find("LABEL_3") == std::string::npos);
}
