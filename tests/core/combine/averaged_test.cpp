// Averages in memory, in random tiles; the reference sums with loops.
#include "core/combine/averaged.h"

#include "core/combine/combined_models.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::vector<double> kWeights{0.5, 0.3, 0.2};

TiledTensor counters(const std::string& fqn, std::int32_t value) {
  TiledTensor tensor{fqn, Dtype::kInt32, {1}, Bytes(4), {}};
  std::memcpy(tensor.bytes.data(), &value, sizeof value);
  return tensor;
}

}  // namespace

TEST_CASE("averaged: the weighted sum of each element, in any tiles and dtypes") {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    const Dtype dtype =
        std::array{Dtype::kFloat32, Dtype::kBfloat16}[static_cast<std::size_t>(round % 2)];
    std::vector<std::shared_ptr<const Checkpoint>> all;
    std::vector<double> sums(35);
    for (std::size_t i = 0; i < kWeights.size(); ++i) {
      // The others may have another dtype than the first.
      const Dtype own = i == 1 ? Dtype::kFloat16 : dtype;
      const Numbers numbers = rounded(random_numbers(35, random), own);
      for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += kWeights[i] * numbers[j];
      TiledTensor tensor = numbers_tensor("a.weight", {5, 7}, numbers, own);
      tensor.tiles = random_tiles(tensor.shape, random);
      all.push_back(laid({tensor, counters("count", static_cast<std::int32_t>(i))}));
    }
    auto made = average_checkpoints(all, kWeights, {}, nullptr);
    REQUIRE(made.has_value());
    const Numbers expected(sums.begin(), sums.end());
    CHECK(bytes_of(**made, "a.weight") == as_dtype(expected, dtype));
    CHECK(bytes_of(**made, "count") == counters("count", 0).bytes);
  }
}

TEST_CASE("averaged: names, shapes and dtypes that differ are refused, but for what is aside") {
  const auto one = [](const std::string& fqn, const Extents& shape) {
    return numbers_tensor(fqn, shape, Numbers(static_cast<std::size_t>(volume(shape).value()), 1));
  };
  const auto first = laid({one("a", {2, 2})});
  for (const auto& other :
       {laid({one("a", {4})}), laid({one("b", {2, 2})}), laid({one("a", {2, 2}), one("b", {1})}),
        laid({TiledTensor{"a", Dtype::kInt32, {2, 2}, Bytes(16), {}}})}) {
    auto made = average_checkpoints({first, other}, {0.5, 0.5}, {}, nullptr);
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().kind == ErrorKind::kUnsupported);
    CHECK_FALSE(made.error().place.tensor.empty());
  }
  auto made = average_checkpoints({laid({one("a", {2, 2}), one("b", {1})}), first}, {0.5, 0.5},
                                  {"b"}, nullptr);
  REQUIRE(made.has_value());
  CHECK(numbers_of(**made, "b") == Numbers{1});
}

TEST_CASE("averaged: quantised weights are refused") {
  const TiledTensor narrow{"a", Dtype::kFloat8E4m3fn, {4}, Bytes(4), {}};
  CHECK_FALSE(
      average_checkpoints({laid({narrow}), laid({narrow})}, {0.5, 0.5}, {}, nullptr).has_value());
  const auto packed =
      laid({numbers_tensor("a", {1}, {1})}, "memory", 0, {},
           {{"config.json", R"({"quantization_config": {"quant_method": "awq"}})"}});
  CHECK_FALSE(average_checkpoints({packed, packed}, {0.5, 0.5}, {}, nullptr).has_value());
}
