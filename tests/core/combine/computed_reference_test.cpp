// References whose tensors are computed, and weights that have unrelated to the reference with
// theirs.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <map>
#include <random>

#include "core/combine/combined_models.h"
#include "core/facts/values/computed_tensors.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/reference/against_support.h"

using namespace shw;

namespace {

using test::as_dtype, test::TiledTensor, test::Numbers, test::numbers_tensor, test::random_numbers;

constexpr std::size_t kInSquare = 64 * 64;
const Extents kSquare = {64, 64};

Numbers numbers_of_seed(unsigned seed) {
  std::mt19937 random(seed);
  return random_numbers(kInSquare, random);
}

std::string name_of_layer(int layer) {
  return fmt::format("model.layers.{}.w.weight", layer);
}

using Weights = std::map<std::string, Numbers>;

// Checkpoints of one folder have one fingerprint for each place of a file.
std::shared_ptr<const Checkpoint> laid_weights(const Weights& weights,
                                               const std::string& folder = "stored") {
  std::vector<TiledTensor> tensors;
  for (const auto& [name, numbers] : weights)
    tensors.push_back(numbers_tensor(name, kSquare, numbers, Dtype::kBfloat16));
  return test::laid(tensors, folder);
}

// The same weights, computed and rounded.
std::shared_ptr<const Checkpoint> computed_weights(const Weights& weights) {
  ComputedPart part;
  for (const auto& [name, numbers] : weights) {
    const Bytes bytes = as_dtype(numbers, Dtype::kBfloat16);
    part.tensors.push_back({name, Dtype::kBfloat16, kSquare, kSquare[0],
                            [bytes](std::int64_t, std::int64_t) -> Result<Bytes> { return bytes; },
                            true});
  }
  auto made =
      make_computed_only_checkpoint(*laid_weights(weights)->directory(), std::move(part), nullptr);
  REQUIRE(made.has_value());
  return *made;
}

std::vector<const Finding*> told_as_differing(const CheckReport& report) {
  return all_of(report, "differs-from-reference");
}

CheckReport held_beside(const std::shared_ptr<const Checkpoint>& checkpoint,
                        std::shared_ptr<const Checkpoint> reference) {
  CheckOptions options;
  options.reference = std::move(reference);
  auto report = check(*checkpoint, options);
  REQUIRE(report.has_value());
  return std::move(*report);
}

}  // namespace

TEST_CASE("differs from reference: one step of rounding from a computed one is nothing") {
  Weights expected, stored;
  for (int i = 0; i < 6; ++i)
    expected[name_of_layer(i)] = numbers_of_seed(static_cast<unsigned>(i));
  stored = expected;
  for (float& one : stored[name_of_layer(1)]) one *= 1.0F + 0x1p-8F;
  CHECK(told_as_differing(held_beside(laid_weights(stored), computed_weights(expected))).empty());
  // A stored reference of the same step is not rounded again.
  CHECK_FALSE(
      told_as_differing(held_beside(laid_weights(stored), laid_weights(expected, "reference")))
          .empty());
}

TEST_CASE("differs from reference: what a computed one adds and is not here is a warning") {
  Weights expected, stored;
  for (int i = 0; i < 6; ++i) {
    stored[name_of_layer(i)] = numbers_of_seed(static_cast<unsigned>(i));
    expected[name_of_layer(i)] = stored[name_of_layer(i)];
    for (std::size_t k = 0; k < kInSquare; ++k)
      expected[name_of_layer(i)][k] += 0.05F * stored[name_of_layer(i)][kInSquare - 1 - k];
  }
  const CheckReport report = held_beside(laid_weights(stored), computed_weights(expected));
  REQUIRE(told_as_differing(report).size() == 1);
  CHECK(told_as_differing(report)[0]->severity == Severity::kWarning);
  CHECK(told_as_differing(report)[0]->subjects.size() == 6);
  // Next to a stored reference that is a step of training.
  const CheckReport step = held_beside(laid_weights(stored), laid_weights(expected, "reference"));
  for (const Finding* finding : told_as_differing(step))
    CHECK(finding->severity == Severity::kInfo);
}

TEST_CASE("differs from reference: weights at right angles next to equal ones are a warning") {
  Weights stored, trained;
  for (int i = 0; i < 10; ++i) stored[name_of_layer(i)] = numbers_of_seed(static_cast<unsigned>(i));
  Weights reference = stored;
  trained = stored;
  for (int i = 4; i < 10; ++i) {
    reference[name_of_layer(i)] = numbers_of_seed(static_cast<unsigned>(100 + i));
    for (float& one : trained[name_of_layer(i)]) one *= one > 0 ? 1.02F : 0.97F;
  }
  const CheckReport report =
      held_beside(laid_weights(stored), laid_weights(reference, "reference"));
  REQUIRE(told_as_differing(report).size() == 1);
  CHECK(told_as_differing(report)[0]->severity == Severity::kWarning);
  CHECK(told_as_differing(report)[0]->subjects.size() == 6);
  CHECK(told_as_differing(report)[0]->cause.find("unrelated to the reference") !=
        std::string::npos);
  const CheckReport tuned = held_beside(laid_weights(trained), laid_weights(stored, "reference"));
  REQUIRE_FALSE(told_as_differing(tuned).empty());
  for (const Finding* finding : told_as_differing(tuned))
    CHECK(finding->severity == Severity::kInfo);
}
