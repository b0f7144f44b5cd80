// Results of steps, read without writing them, compared with the simplest implementation.
#include "core/transform/target_view.h"

#include "core/combine/combined_models.h"
#include "core/transform/named_entries.h"
#include "core/transform/steps.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("target_view: the elements of tensors that were cut, turned, joined and cast") {
  std::mt19937 random(6);
  const Numbers a = random_numbers(24, random), b = random_numbers(12, random);
  TiledTensor first = numbers_tensor("a", {6, 4}, a), second = numbers_tensor("b", {3, 4}, b);
  first.tiles = random_tiles(first.shape, random);
  second.tiles = random_tiles(second.shape, random);
  std::vector<Step> steps{
      PermuteBlocksStep{{"a"}, 0, {2, 4}, {1, 0}}, ConcatStep{{"a", "b"}, 0, "joined", false},
      PermuteDimsStep{{"joined"}, {1, 0}}, CastStep{{"joined"}, Dtype::kBfloat16}};
  auto all =
      apply_steps(target_state_of(laid({first, second, numbers_tensor("c", {}, {5})})), steps);
  REQUIRE(all.has_value());
  auto view = target_view(std::make_shared<const TargetState>(std::move(*all)), nullptr);
  INFO((view ? std::string() : view.error().message));
  REQUIRE(view.has_value());
  Numbers rows(a.begin() + 8, a.end());
  rows.insert(rows.end(), a.begin(), a.begin() + 8);
  rows.insert(rows.end(), b.begin(), b.end());
  Numbers expected(36);
  for (std::size_t i = 0; i < 9; ++i) {
    for (std::size_t j = 0; j < 4; ++j) expected[j * 9 + i] = rows[i * 4 + j];
  }
  CHECK(bytes_of(**view, "joined") == as_dtype(expected, Dtype::kBfloat16));
  CHECK(same((*view)->shape(*(*view)->find("joined")), Extents{4, 9}));
  CHECK(numbers_of(**view, "c") == Numbers{5});
  CHECK((*view)->tensor_count() == 2);
}

TEST_CASE("target_view: elements that are nowhere are an error") {
  TiledTensor tensor = numbers_tensor("a", {2, 2}, {1, 2, 3, 4});
  tensor.tiles = {{Box{{0, 0}, {1, 2}}, false}};
  const TargetState all = target_state_of(laid({tensor}));
  CHECK_FALSE(target_view(std::make_shared<const TargetState>(all), nullptr).has_value());
}

TEST_CASE("add: a number is added to elements wherever they were moved, in float32") {
  std::mt19937 random(7);
  const Numbers a = random_numbers(24, random), b = random_numbers(12, random);
  TiledTensor first = numbers_tensor("a", {6, 4}, a, Dtype::kBfloat16),
              second = numbers_tensor("b", {3, 4}, b);
  first.tiles = random_tiles(first.shape, random);
  const auto source = laid({first, second, numbers_tensor("wide", {2}, {1, 2}, Dtype::kFloat64)});
  const auto refusal = [&](const std::vector<Step>& steps) {
    auto all = apply_steps(target_state_of(source), steps);
    return all ? std::string() : all.error().message;
  };
  auto all =
      apply_steps(target_state_of(source),
                  {PermuteDimsStep{{"a"}, {1, 0}}, SplitStep{"a", 0, {1, 3}, {"x", "y"}},
                   AddStep{{"y"}, 1}, PadStep{{"b"}, {0, 0}, {1, 0}, 3}, AddStep{{"b"}, -0.5}});
  REQUIRE_MESSAGE(all.has_value(), all.error().message);
  auto view = target_view(std::make_shared<const TargetState>(std::move(*all)), nullptr);
  REQUIRE(view.has_value());
  const Numbers saved = numbers_of(*source, "a");
  Numbers x, y, padded = b;
  for (std::size_t j = 0; j < 4; ++j) {
    for (std::size_t i = 0; i < 6; ++i)
      (j == 0 ? x : y).push_back(saved[i * 4 + j] + (j == 0 ? 0.0F : 1.0F));
  }
  padded.insert(padded.end(), 4, 3);
  for (float& one : padded) one -= 0.5F;
  CHECK(bytes_of(**view, "x") == as_dtype(x, Dtype::kBfloat16));
  CHECK(bytes_of(**view, "y") == as_dtype(y, Dtype::kBfloat16));
  CHECK(numbers_of(**view, "b") == padded);
  CHECK(refusal({AddStep{{"wide"}, 1}}) != "");
  CHECK(refusal({AddStep{{"b"}, 0.1}}) != "");
  CHECK(refusal({CastStep{{"b"}, Dtype::kBfloat16}, AddStep{{"b"}, 1}}) != "");
  CHECK(refusal({AddStep{{"b"}, 1}, AddStep{{"b"}, 1}}) != "");
  CHECK(refusal({CastStep{{"a"}, Dtype::kFloat32}, AddStep{{"a"}, 1}}) == "");
}

TEST_CASE("add: sums that are rounded count as a cast, and sums that come back do not") {
  const Numbers near{1, 1.25F, 1.5F, 1.9921875F}, small{0.001F, 0.002F, 0.003F, 0.004F};
  const auto source = laid({numbers_tensor("near", {4}, near, Dtype::kBfloat16),
                            numbers_tensor("small", {4}, small, Dtype::kBfloat16)});
  auto all = apply_steps(target_state_of(source), {AddStep{{"near"}, -1}, AddStep{{"small"}, 1}});
  REQUIRE(all.has_value());
  for (std::size_t i = 0; i < all->tensors.size(); ++i) {
    const auto tensor = copy_of_entry(*all, i);
    REQUIRE(tensor.has_value());
    CHECK(tensor->is_cast == (tensor->fqn == "small"));
  }
}
