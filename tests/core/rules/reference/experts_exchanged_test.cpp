// Experts in tensors of their own that have each other's numbers.
#include <doctest/doctest.h>

#include <random>

#include "core/rules/reference/against_support.h"

using namespace shw;

namespace {

const Extents kExpertShape{4, 6};

Values expert_content(std::int64_t layer, std::int64_t expert, std::int64_t what) {
  return numbers_from(100'000 * layer + 1000 * expert + 100 * what, 24);
}

// Numbers of a normal distribution that change a little per step.
Values trained_content(std::int64_t layer, std::int64_t expert, std::int64_t what,
                       std::int64_t step) {
  std::mt19937 dice(static_cast<std::uint32_t>(10'000 * layer + 100 * expert + what));
  std::normal_distribution<double> normal(0, 1000);
  Values values;
  for (int i = 0; i < 24 * 16; ++i)
    values.push_back(static_cast<std::int64_t>(normal(dice) + 100 * normal(dice) / 1000 *
                                                                  static_cast<double>(step)));
  return values;
}

// Two layers in which expert i has the content of expert order[i].
std::vector<MadeTensor> moe(const std::vector<std::int64_t>& order, std::int64_t step = 0) {
  std::vector<MadeTensor> tensors;
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    const std::string before = "model.layers." + std::to_string(layer) + ".mlp.";
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::string name = before + "experts." + std::to_string(i) + ".";
      tensors.push_back(cut_in_rows(name + "up_proj.weight", kExpertShape,
                                    expert_content(layer, order[i], 1 + step), 1));
      tensors.push_back(cut_in_rows(name + "down_proj.weight", kExpertShape,
                                    expert_content(layer, order[i], 5 + step), 1));
    }
    tensors.push_back(
        cut_in_rows(before + "gate.weight", kExpertShape, expert_content(layer, 77, 1), 1));
  }
  return tensors;
}

}  // namespace

TEST_CASE("experts under each other's numbers are reported with the order that the bytes prove") {
  TemporaryFolder folder;
  write_checkpoint(folder / "good", moe({0, 1, 2, 3, 4, 5}));
  write_checkpoint(folder / "bad", moe({0, 3, 4, 1, 2, 5}));
  const CheckReport report = held_against(folder / "bad", folder / "good");
  const Finding* finding = first_of(report, "experts-exchanged");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kError);
  CHECK(first_of(report, "differs-from-reference") == nullptr);
  CHECK(finding->subjects.size() == 16);
  CHECK_MESSAGE(finding->cause.find("model.layers.0.mlp.experts.* 1-2 are the reference's 3-4 and "
                                    "3-4 are the reference's 1-2, and so it is in 1 more layer") !=
                    std::string::npos,
                finding->cause);
}

TEST_CASE("experts of another step, or of which one is new, are not called exchanged") {
  TemporaryFolder folder;
  write_checkpoint(folder / "good", moe({0, 1, 2, 3}));
  write_checkpoint(folder / "later", moe({1, 0, 2, 3}, 1));
  write_checkpoint(folder / "new", moe({1, 9, 2, 3}));
  write_checkpoint(folder / "same", moe({0, 1, 2, 3}));
  for (const char* other : {"later", "new", "same"}) {
    CAPTURE(other);
    const CheckReport report = held_against(folder / other, folder / "good", Depth::kData);
    CHECK(first_of(report, "experts-exchanged") == nullptr);
  }
}

TEST_CASE("experts under each other's numbers are reported next to an earlier step") {
  const Extents shape{24, 16};
  auto model = [&](const std::vector<std::int64_t>& order, std::int64_t step) {
    std::vector<MadeTensor> tensors;
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      for (std::size_t i = 0; i < order.size(); ++i) {
        const std::string name =
            "model.layers." + std::to_string(layer) + ".mlp.experts." + std::to_string(i) + ".";
        for (std::int64_t what : {1, 2})
          tensors.push_back(cut_in_rows(name + (what == 1 ? "up_proj" : "down_proj") + ".weight",
                                        shape, trained_content(layer, order[i], what, step), 2));
      }
    }
    return tensors;
  };
  TemporaryFolder folder;
  write_checkpoint(folder / "earlier", model({0, 1, 2, 3, 4}, 0));
  write_checkpoint(folder / "sound", model({0, 1, 2, 3, 4}, 1));
  write_checkpoint(folder / "bad", model({0, 2, 1, 3, 4}, 1));
  write_checkpoint(folder / "doubled", model({0, 2, 2, 3, 4}, 1));
  for (Depth depth : {Depth::kHeaders, Depth::kData}) {
    CHECK(count_above_info(held_against(folder / "sound", folder / "earlier", depth)) == 0);
    CHECK(first_of(held_against(folder / "doubled", folder / "earlier", depth),
                   "experts-exchanged") == nullptr);
    const CheckReport report = held_against(folder / "bad", folder / "earlier", depth);
    const Finding* finding = first_of(report, "experts-exchanged");
    REQUIRE(finding != nullptr);
    CHECK(finding->subjects.size() == 8);
    CHECK_MESSAGE(finding->cause.starts_with(
                      "8 tensors of experts are like what other experts of their layer hold in the "
                      "reference, matched by correlation (training has changed them since): of "
                      "model.layers.0.mlp.experts.* 1 are the reference's 2 and 2 are the "
                      "reference's 1, and so it is in 1 more layer."),
                  finding->cause);
  }
}
