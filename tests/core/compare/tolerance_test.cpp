// Values that are nearly the same, and comparisons of selected names.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "core/compare/compare.h"
#include "core/compare/laid.h"

using namespace shw;
using shw::test::laid;
using shw::test::TiledTensor;

namespace {

TiledTensor near_floats(const std::string& fqn, const std::vector<float>& numbers) {
  Bytes bytes(numbers.size() * 4);
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return {fqn, Dtype::kFloat32, {static_cast<std::int64_t>(numbers.size())}, bytes};
}

CheckpointDifference told_within(const std::vector<TiledTensor>& a,
                                 const std::vector<TiledTensor>& b, Tolerance tolerance) {
  auto told = compare_checkpoints(*laid(a, "a"), *laid(b, "b"),
                                  {.data = true, .tolerance = tolerance}, nullptr);
  REQUIRE(told.has_value());
  return std::move(*told);
}

}  // namespace

TEST_CASE("diff: values within the tolerance are not a difference, and are counted apart") {
  const std::vector<TiledTensor> a = {near_floats("same", {1, 2}), near_floats("near", {1, 100})};
  const std::vector<TiledTensor> b = {near_floats("same", {1, 2}),
                                      near_floats("near", {1.001F, 100.01F})};
  const CheckpointDifference near = told_within(a, b, {0.0011, 0.001});
  CHECK(near.verdict == EqualityVerdict::kSame);
  CHECK(near.same == 1);
  CHECK(near.within == 1);
  REQUIRE(near.tensors.size() == 1);
  CHECK(near.tensors.front().within);
  const CheckpointDifference far = told_within(a, b, {0.0011, 0});
  CHECK(far.verdict == EqualityVerdict::kDifferent);
  REQUIRE(far.tensors.size() == 1);
  CHECK(!far.tensors.front().within);
  CHECK(far.tensors.front().values->elements.beyond == 1);
}

TEST_CASE("diff: NaN and infinity are within a tolerance of themselves alone") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const Tolerance wide{1e30, 1e30};
  auto verdict = [&](float a, float b) {
    return told_within({near_floats("w", {a, 1})}, {near_floats("w", {b, 2})}, wide).verdict;
  };
  CHECK(verdict(nan, nan) == EqualityVerdict::kSame);
  CHECK(verdict(inf, inf) == EqualityVerdict::kSame);
  CHECK(verdict(nan, 1) == EqualityVerdict::kDifferent);
  CHECK(verdict(inf, 1) == EqualityVerdict::kDifferent);
  CHECK(verdict(1, -inf) == EqualityVerdict::kDifferent);
}

TEST_CASE("diff: names that are not asked for say nothing") {
  const std::vector<TiledTensor> a = {near_floats("same", {1, 2}), near_floats("other", {1})};
  const std::vector<TiledTensor> b = {near_floats("same", {1, 2}), near_floats("another", {1})};
  const ComparedNames only = {"same"};
  auto told =
      compare_checkpoints(*laid(a, "a"), *laid(b, "b"), {.data = true, .only = &only}, nullptr);
  REQUIRE(told.has_value());
  CHECK(told->verdict == EqualityVerdict::kSame);
  CHECK(told->in_both == 1);
  CHECK(told->tensors.empty());
}
