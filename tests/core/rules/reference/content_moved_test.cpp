// Tensors and rows that the reference has under another name, and routers with more rows than
// experts.
#include <doctest/doctest.h>

#include "core/rules/reference/against_support.h"

using namespace shw;

namespace {

MadeTensor whole_tensor(const std::string& fqn, const Extents& shape, std::int64_t first) {
  return cut_in_rows(fqn, shape, numbers_from(first, volume(shape).value()), 1);
}

// Two layers of a gated MLP and attention; the tensor gate has the content of `gate`, and so on.
std::vector<MadeTensor> gated_model(const char* gate, const char* up, std::int64_t step = 0) {
  std::vector<MadeTensor> tensors;
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    const std::string before = "model.layers." + std::to_string(layer) + ".";
    auto first = [&](const char* of) { return 10'000 * layer + (of[0] == 'g' ? 100 : 900) + step; };
    tensors.push_back(whole_tensor(before + "mlp.gate_proj.weight", {6, 4}, first(gate)));
    tensors.push_back(whole_tensor(before + "mlp.up_proj.weight", {6, 4}, first(up)));
    tensors.push_back(
        whole_tensor(before + "mlp.down_proj.weight", {4, 6}, 10'000 * layer + 2000 + step));
  }
  return tensors;
}

// Query, key and value whose rows, joined, are `rows` of one matrix.
std::vector<MadeTensor> attention_of(const std::vector<std::int64_t>& rows) {
  Values values;
  for (std::int64_t row : rows) {
    const Values one = numbers_from(100 * row, 4);
    values.insert(values.end(), one.begin(), one.end());
  }
  auto part = [&](const char* name, std::int64_t from, std::int64_t count) {
    const Values own(values.begin() + from * 4, values.begin() + (from + count) * 4);
    return cut_in_rows(std::string("model.layers.0.self_attn.") + name + ".weight", {count, 4}, own,
                       1);
  };
  return {part("q_proj", 0, 8), part("k_proj", 8, 4), part("v_proj", 12, 4)};
}

std::string mended(const TemporaryFolder& folder, const CheckReport& report) {
  const std::string out = repaired_into(folder / "bad", report, folder / "mended");
  const CheckReport after = held_against(out, folder / "good", Depth::kData);
  CHECK(count_above_info(after) == 0);
  CHECK(first_of(after, "differs-from-reference") == nullptr);
  return out;
}

}  // namespace

TEST_CASE("content: gate and up under each other's names are reported and exchanged by names") {
  TemporaryFolder folder;
  write_checkpoint(folder / "good", gated_model("gate", "up"));
  write_checkpoint(folder / "bad", gated_model("up", "gate"));
  const CheckReport report = held_against(folder / "bad", folder / "good", Depth::kData);
  const Finding* finding = first_of(report, "content-moved");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kError);
  CHECK(finding->subjects.size() == 4);
  CHECK(finding->cause.find("swapped") != std::string::npos);
  CHECK(first_of(report, "differs-from-reference") == nullptr);
  REQUIRE(finding->remedy.has_value());
  CHECK(finding->remedy->lossless);
  mended(folder, report);
}

TEST_CASE("content: another step of the training is not called moved") {
  TemporaryFolder folder;
  write_checkpoint(folder / "good", gated_model("gate", "up"));
  write_checkpoint(folder / "later", gated_model("gate", "up", 1));
  write_checkpoint(folder / "same", gated_model("gate", "up"));
  for (const char* other : {"later", "same"})
    CHECK(first_of(held_against(folder / other, folder / "good", Depth::kData), "content-moved") ==
          nullptr);
}

TEST_CASE("content: copies of one tensor under several names bring no rename") {
  TemporaryFolder folder;
  write_checkpoint(folder / "good", gated_model("gate", "up"));
  write_checkpoint(folder / "bad", gated_model("up", "up"));
  const CheckReport report = held_against(folder / "bad", folder / "good", Depth::kData);
  const Finding* finding = first_of(report, "content-moved");
  REQUIRE(finding != nullptr);
  CHECK(finding->subjects.size() == 2);
  CHECK_FALSE(finding->remedy.has_value());
}

TEST_CASE("content: rows of query, key and value cut one after the other go back to their own") {
  TemporaryFolder folder;
  write_checkpoint(folder / "good",
                   attention_of({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  // Two groups of four query rows, two key rows and two value rows.
  write_checkpoint(folder / "bad",
                   attention_of({0, 1, 2, 3, 8, 9, 12, 13, 4, 5, 6, 7, 10, 11, 14, 15}));
  const CheckReport report = held_against(folder / "bad", folder / "good", Depth::kData);
  const Finding* finding = first_of(report, "content-moved");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kError);
  CHECK(finding->subjects.size() == 3);
  REQUIRE(finding->remedy.has_value());
  mended(folder, report);
}

TEST_CASE("content: experts that every rank numbered from 0 are named and numbered again") {
  auto experts = [](const std::vector<std::int64_t>& held) {
    std::vector<MadeTensor> tensors;
    for (std::size_t i = 0; i < held.size(); ++i) {
      for (std::int64_t what : {0, 1})
        tensors.push_back(whole_tensor("model.layers.0.mlp.experts." + std::to_string(i) +
                                           (what == 0 ? ".up_proj.weight" : ".down_proj.weight"),
                                       {4, 6}, 1000 * held[i] + 100 * what));
    }
    tensors.push_back(whole_tensor("model.layers.0.mlp.gate.weight", {8, 6}, 90'000));
    return tensors;
  };
  TemporaryFolder folder;
  write_checkpoint(folder / "good", experts({0, 1, 2, 3, 4, 5, 6, 7}));
  write_checkpoint(folder / "bad", experts({6, 7}));
  const CheckReport alone = held_against(folder / "bad", "");
  const Finding* rows = first_of(alone, "router-rows");
  REQUIRE(rows != nullptr);
  CHECK(rows->severity == Severity::kWarning);
  CHECK_MESSAGE(rows->cause.find("scores 8 experts, and 2 experts") != std::string::npos,
                rows->cause);
  CHECK(first_of(held_against(folder / "good", ""), "router-rows") == nullptr);
  const CheckReport report = held_against(folder / "bad", folder / "good", Depth::kData);
  const Finding* moved = first_of(report, "content-moved");
  REQUIRE(moved != nullptr);
  CHECK_MESSAGE(moved->cause.find("0 is 6 and 1 is 7") != std::string::npos, moved->cause);
  REQUIRE(moved->remedy.has_value());
  const std::string out = repaired_into(folder / "bad", report, folder / "mended");
  CHECK(opened(out)->find("model.layers.0.mlp.experts.7.up_proj.weight").has_value());
  CHECK(first_of(held_against(out, folder / "good", Depth::kData), "content-moved") == nullptr);
}

TEST_CASE("content: norms with 1 added to every element are reported") {
  auto norms = [](std::int64_t shift) {
    std::vector<MadeTensor> tensors;
    for (std::int64_t layer : {0, 1}) {
      const std::string before = "model.layers." + std::to_string(layer) + ".";
      tensors.push_back(whole_tensor(before + "input_layernorm.weight", {24}, 100 * layer + shift));
      tensors.push_back(whole_tensor(before + "mlp.up_proj.weight", {6, 4}, 5000 + 100 * layer));
    }
    return tensors;
  };
  TemporaryFolder folder;
  write_checkpoint(folder / "good", norms(0));
  write_checkpoint(folder / "bad", norms(1));
  write_checkpoint(folder / "later", norms(2));
  const CheckReport report = held_against(folder / "bad", folder / "good", Depth::kData);
  const Finding* finding = first_of(report, "norms-shifted");
  REQUIRE(finding != nullptr);
  CHECK(finding->subjects.size() == 2);
  CHECK(first_of(held_against(folder / "later", folder / "good", Depth::kData), "norms-shifted") ==
        nullptr);
}
