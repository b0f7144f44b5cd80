// Adapters for parameters instead of modules (target_parameters): all experts in two matrices, as
// PEFT stores them. The reference is the einsum of ParamWrapper.get_delta_weight written as loops.
#include "core/combine/wrapped_parameters.h"

#include <array>
#include <tuple>

#include "core/combine/combined_models.h"
#include "core/combine/merged_adapter.h"

using namespace shw;
using namespace shw::test;

namespace {

constexpr std::size_t kExperts = 3, kWrappedRank = 2, kHidden = 5, kInner = 4;
constexpr float kScale = 1.5f;  // lora_alpha 3 / r 2
const std::string kWrappedRoot = "base_model.model.";
const std::string kExpertsModule = "model.layers.0.mlp.experts";
const std::string kWrappedConfig = R"({"r": 2, "lora_alpha": 3, "target_modules": [],
    "target_parameters": ["experts.gate_up_proj", "mlp.experts.down_proj"]})";

struct Stack {
  std::size_t in = 0, out = 0;
  Numbers a, b;  // [experts * rank, in], [out, rank * experts]

  float delta(std::size_t expert, std::size_t output, std::size_t input) const {
    float sum = 0;
    for (std::size_t k = 0; k < kWrappedRank; ++k)
      sum += b[output * kWrappedRank * kExperts + k * kExperts + expert] *
             a[(expert * kWrappedRank + k) * in + input];
    return kScale * sum;
  }
};
Stack random_stack(std::size_t in, std::size_t out, std::mt19937& random) {
  return {in, out, random_numbers(kExperts * kWrappedRank * in, random),
          random_numbers(out * kWrappedRank * kExperts, random)};
}

Extents extents_of(std::initializer_list<std::size_t> sizes) {
  Extents shape;
  for (std::size_t size : sizes) shape.push_back(static_cast<std::int64_t>(size));
  return shape;
}

// The first parameter was wrapped first, so its matrices are the inner ones.
std::vector<TiledTensor> stacked_matrices_of(const Stack& gate_up, const Stack& down) {
  std::vector<TiledTensor> tensors;
  auto add = [&](const std::string& module, const Stack& of) {
    tensors.push_back(numbers_tensor(kWrappedRoot + module + ".lora_A.weight",
                                     extents_of({kExperts * kWrappedRank, of.in}), of.a));
    tensors.push_back(numbers_tensor(kWrappedRoot + module + ".lora_B.weight",
                                     extents_of({of.out, kWrappedRank * kExperts}), of.b));
  };
  add(kExpertsModule + ".base_layer", gate_up);
  add(kExpertsModule, down);
  return tensors;
}

auto merged_wrapped(const std::vector<TiledTensor>& base, const std::vector<TiledTensor>& adapter,
                    const std::string& config = kWrappedConfig) {
  return merge_adapter(laid(base, "base", 0),
                       laid(adapter, "adapter", 0, {}, {{"adapter_config.json", config}}), nullptr);
}

}  // namespace

TEST_CASE("wrapped_parameters: stacked experts of inputs first, and of outputs first") {
  std::mt19937 random(31);
  for (const bool is_input_first : {true, false}) {
    CAPTURE(is_input_first);
    const Stack gate_up = random_stack(kHidden, 2 * kInner, random);
    const Stack down = random_stack(kInner, kHidden, random);
    std::vector<TiledTensor> base;
    std::vector<Numbers> expected;
    for (const auto& [name, of] : {std::pair{".gate_up_proj", &gate_up}, {".down_proj", &down}}) {
      Numbers weight = random_numbers(kExperts * of->in * of->out, random);
      const auto shape = is_input_first ? extents_of({kExperts, of->in, of->out})
                                        : extents_of({kExperts, of->out, of->in});
      base.push_back(numbers_tensor(kExpertsModule + name, shape, weight));
      for (std::size_t e = 0; e < kExperts; ++e) {
        for (std::size_t o = 0; o < of->out; ++o) {
          for (std::size_t i = 0; i < of->in; ++i)
            weight[e * of->in * of->out + (is_input_first ? i * of->out + o : o * of->in + i)] +=
                of->delta(e, o, i);
        }
      }
      expected.push_back(weight);
    }
    auto made = merged_wrapped(base, stacked_matrices_of(gate_up, down));
    REQUIRE_MESSAGE(made.has_value(), made.error().message);
    check_near(numbers_of(**made, kExpertsModule + ".gate_up_proj"), expected[0], 1e-5);
    check_near(numbers_of(**made, kExpertsModule + ".down_proj"), expected[1], 1e-5);
  }
}

TEST_CASE("wrapped_parameters: a base with one matrix for each expert") {
  std::mt19937 random(32);
  const Stack gate_up = random_stack(kHidden, 2 * kInner, random);
  const Stack down = random_stack(kInner, kHidden, random);
  for (const bool is_mixtral : {false, true}) {
    CAPTURE(is_mixtral);
    const std::string module =
        is_mixtral ? "model.layers.0.block_sparse_moe.experts" : kExpertsModule;
    const auto names =
        is_mixtral ? std::array{".w1.weight", ".w3.weight", ".w2.weight"}
                   : std::array{".gate_proj.weight", ".up_proj.weight", ".down_proj.weight"};
    std::vector<TiledTensor> base;
    std::vector<std::pair<std::string, Numbers>> expected;
    for (std::size_t e = 0; e < kExperts; ++e) {
      for (std::size_t part = 0; part < names.size(); ++part) {
        const Stack& of = part == 2 ? down : gate_up;
        const std::size_t rows = part == 2 ? kHidden : kInner;
        const std::size_t first = part == 1 ? kInner : 0;
        Numbers weight = random_numbers(rows * of.in, random);
        const std::string name = module + "." + std::to_string(e) + names[part];
        base.push_back(numbers_tensor(name, extents_of({rows, of.in}), weight));
        for (std::size_t o = 0; o < rows; ++o) {
          for (std::size_t i = 0; i < of.in; ++i)
            weight[o * of.in + i] += of.delta(e, first + o, i);
        }
        expected.emplace_back(name, weight);
      }
    }
    auto made = merged_wrapped(base, stacked_matrices_of(gate_up, down));
    REQUIRE_MESSAGE(made.has_value(), made.error().message);
    for (const auto& [name, weight] : expected) check_near(numbers_of(**made, name), weight, 1e-5);
  }
}

TEST_CASE("wrapped_parameters: what shapes do not tell apart is refused") {
  std::mt19937 random(33);
  const Stack square = random_stack(kHidden, kHidden, random);
  const std::string one = R"({"r": 2, "lora_alpha": 3, "target_modules": [],
                              "target_parameters": ["experts.down_proj"]})";
  std::vector<TiledTensor> matrices = stacked_matrices_of(square, square);
  matrices.erase(matrices.begin(), matrices.begin() + 2);
  const TiledTensor weight =
      numbers_tensor(kExpertsModule + ".down_proj", extents_of({kExperts, kHidden, kHidden}),
                     Numbers(kExperts * kHidden * kHidden, 1));
  for (const auto& [base, adapter, config] :
       {std::tuple{std::vector{weight}, matrices, one},
        std::tuple{std::vector{weight}, matrices, kWrappedConfig},
        std::tuple{std::vector{weight}, std::vector{matrices.front()}, one},
        std::tuple{
            std::vector{numbers_tensor(kExpertsModule + ".down_proj", {2, 2}, Numbers(4, 1))},
            matrices, one}}) {
    auto made = merged_wrapped(base, adapter, config);
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().kind == ErrorKind::kUnsupported);
  }
}
