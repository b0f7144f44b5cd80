// What steps make, read without writing it, against what the plainest reading of the steps says.
#include "core/transform/target_view.h"

#include "core/combine/combined_models.h"
#include "core/transform/steps.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("target_view: the elements of tensors that were cut, turned, joined and cast") {
  std::mt19937 random(6);
  const Numbers a = random_numbers(24, random), b = random_numbers(12, random);
  LaidTensor first = numbers_tensor("a", {6, 4}, a), second = numbers_tensor("b", {3, 4}, b);
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
  LaidTensor tensor = numbers_tensor("a", {2, 2}, {1, 2, 3, 4});
  tensor.tiles = {{Box{{0, 0}, {1, 2}}, false}};
  const TargetState all = target_state_of(laid({tensor}));
  CHECK_FALSE(target_view(std::make_shared<const TargetState>(all), nullptr).has_value());
}
