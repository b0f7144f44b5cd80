// Tensors that were saved as several copies of themselves in a row.
#include <doctest/doctest.h>

#include "core/rules/reference/against_support.h"

using namespace shw;

TEST_CASE(
    "repeated: copies of a buffer after one another are reported, and trimmed by a reference") {
  auto buffers = [](std::int64_t copies) {
    std::vector<MadeTensor> tensors;
    for (std::int64_t buffer : {0, 1}) {
      Values values;
      for (std::int64_t i = 0; i < copies; ++i) {
        const Values one = numbers_from(100 * buffer, 24);
        values.insert(values.end(), one.begin(), one.end());
      }
      tensors.push_back(
          cut_in_rows("vision.std_" + std::to_string(buffer), {24 * copies}, values, 1));
    }
    tensors.push_back(
        cut_in_rows("model.layers.0.mlp.up_proj.weight", {6, 4}, numbers_from(5000, 24), 1));
    return tensors;
  };
  TemporaryFolder folder;
  write_checkpoint(folder / "good", buffers(1));
  write_checkpoint(folder / "bad", buffers(8));
  const CheckReport alone = held_against(folder / "bad", "", Depth::kData);
  const Finding* seen = first_of(alone, "axis-repeated");
  REQUIRE(seen != nullptr);
  CHECK(seen->severity == Severity::kWarning);
  CHECK(seen->cause.find("8 equal copies of [24]") != std::string::npos);
  CHECK(first_of(held_against(folder / "good", "", Depth::kData), "axis-repeated") == nullptr);
  const CheckReport report = held_against(folder / "bad", folder / "good", Depth::kData);
  const Finding* proved = first_of(report, "axis-repeated");
  REQUIRE(proved != nullptr);
  CHECK(proved->severity == Severity::kError);
  CHECK(first_of(report, "shape-mismatch") == nullptr);
  const std::string out = repaired_into(folder / "bad", report, folder / "mended");
  CHECK(count_above_info(held_against(out, folder / "good", Depth::kData)) == 0);
}

TEST_CASE("repeated: moments whose rows are all equal are not copies of ranks") {
  const auto is_told = [](const std::string& before, const std::string& ending) {
    Values values;
    for (std::int64_t row = 0; row < 8; ++row) {
      const Values one = numbers_from(100, 24);
      values.insert(values.end(), one.begin(), one.end());
    }
    std::vector<MadeTensor> tensors;
    for (const char* name : {"head", "tail"})
      tensors.push_back(cut_in_rows(before + name + ending, {8 * 24}, values, 1));
    TemporaryFolder folder;
    write_checkpoint(folder / "made", tensors);
    return first_of(held_against(folder / "made", "", Depth::kData), "axis-repeated") != nullptr;
  };
  CHECK(is_told("", ".weight"));
  CHECK_FALSE(is_told("state.", ".weight.exp_avg"));
}
