// Extracting and merging an adapter gives the tuned model, up to its rank.
#include "core/combine/extracted_adapter.h"

#include "core/combine/combined_models.h"
#include "core/combine/merged_adapter.h"

using namespace shw;
using namespace shw::test;

namespace {

// Adds a product of rank 2 to the weight of q_proj, and other numbers to norms and embeddings.
struct Models {
  std::shared_ptr<const Checkpoint> base, tuned;
};
Models models(bool is_turned, std::mt19937& random) {
  const Extents shape = is_turned ? Extents{9, 12} : Extents{12, 9};
  std::vector<TiledTensor> base, tuned;
  auto add = [&](const std::string& fqn, const Extents& of, const Numbers& before,
                 const Numbers& after) {
    base.push_back(numbers_tensor(fqn, of, before));
    tuned.push_back(numbers_tensor(fqn, of, after));
    base.back().tiles = random_tiles(of, random);
    tuned.back().tiles = random_tiles(of, random);
  };
  for (int layer = 0; layer < 2; ++layer) {
    const std::string module = "model.layers." + std::to_string(layer) + ".";
    const Numbers weight = random_numbers(108, random), b = random_numbers(2, random);
    Numbers changed = weight;
    for (std::size_t i = 0; i < changed.size(); ++i)
      changed[i] += layer == 0 ? static_cast<float>(i % 5) * b[0] + static_cast<float>(i / 9) : 0;
    add(module + "q_proj.weight", shape, weight, changed);
    const Numbers bias = random_numbers(12, random);
    add(module + "q_proj.bias", {12}, bias, bias);
    const Numbers norm = random_numbers(9, random);
    add(module + "input_layernorm.weight", {9}, norm, layer == 0 ? Numbers(9, 2) : norm);
  }
  const Numbers table = random_numbers(40, random);
  add("model.embed_tokens.weight", {8, 5}, table, random_numbers(40, random));
  return {laid(base, "base"), laid(tuned, "tuned")};
}

}  // namespace

TEST_CASE("extracted_adapter: merged into the base it gives the tuned model") {
  std::mt19937 random(2);
  for (const bool is_turned : {false, true}) {
    CAPTURE(is_turned);
    const Models made = models(is_turned, random);
    auto adapter = extract_adapter(made.tuned, made.base, 9, nullptr);
    INFO((adapter ? std::string() : adapter.error().message));
    REQUIRE(adapter.has_value());
    // Both layers have matrices, and both norms are included: PEFT matches modules by name.
    CHECK((*adapter)->tensor_count() == 4 + 2 + 1);
    auto again = merge_adapter(made.base, *adapter, nullptr);
    INFO((again ? std::string() : again.error().message));
    REQUIRE(again.has_value());
    for (TensorId tensor : made.tuned->tensors()) {
      const std::string fqn(made.tuned->fqn(tensor));
      CAPTURE(fqn);
      const Numbers is = numbers_of(**again, fqn), expected = numbers_of(*made.tuned, fqn);
      for (std::size_t i = 0; i < is.size(); ++i)
        CHECK(is[i] == doctest::Approx(expected[i]).epsilon(1e-4));
    }
    CHECK_FALSE(extraction_text(*(*adapter)->directory()).empty());
  }
}

TEST_CASE("extracted_adapter: what has no place in an adapter is refused by name") {
  std::mt19937 random(3);
  const TiledTensor weight = numbers_tensor("a.weight", {4, 4}, random_numbers(16, random));
  const TiledTensor other = numbers_tensor("a.weight", {4, 4}, random_numbers(16, random));
  auto refused = [](const std::vector<TiledTensor>& tuned, const std::vector<TiledTensor>& base) {
    auto made = extract_adapter(laid(tuned), laid(base), 2, nullptr);
    return !made.has_value();
  };
  CHECK_FALSE(refused({other}, {weight}));
  CHECK(refused({weight}, {weight}));
  CHECK(refused({other, numbers_tensor("b", {1}, {1})}, {weight}));
  CHECK(refused({other}, {weight, numbers_tensor("b", {1}, {1})}));
  CHECK(refused({other, numbers_tensor("e.weight", {1, 1, 2}, {1, 2})},
                {weight, numbers_tensor("e.weight", {1, 1, 2}, {1, 3})}));
  CHECK(refused({numbers_tensor("a.weight", {16}, random_numbers(16, random))}, {weight}));
}
