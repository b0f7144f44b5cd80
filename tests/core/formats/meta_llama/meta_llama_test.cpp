// Llama in Meta's own form, made by hand.
#include "core/formats/meta_llama/meta_open.h"

#include "core/formats/torch_file/torch_file_support.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

// [2, 3] floats with that value; the norm has three.
Bytes meta_rank(const char value) {
  const std::string matrix = tensor_call({});
  const std::string norm = tensor_call({.count = 3, .sizes = {3}, .strides = {1}, .key = "1"});
  return to_bytes(
      state_dict_file(pickled_dict({{"tok_embeddings.weight", matrix},
                                    {"norm.weight", norm},
                                    {"layers.0.attention.wq.weight", matrix},
                                    {"layers.0.attention.wo.weight", matrix},
                                    {"layers.0.new.weight", matrix}}),
                      {{"m/data/0", std::string(24, value)}, {"m/data/1", std::string(12, '\7')}}));
}

Extents shape_in(const Checkpoint& checkpoint, const char* name) {
  auto tensor = checkpoint.find(name);
  REQUIRE_MESSAGE(tensor.has_value(), name);
  const auto shape = checkpoint.shape(*tensor);
  return {shape.begin(), shape.end()};
}

}  // namespace

TEST_CASE("meta llama: parts of two ranks are joined along the axis of their layer") {
  auto opened =
      open_checkpoint(memory_directory("ckpt", {{"consolidated.00.pth", meta_rank('\1')},
                                                {"consolidated.01.pth", meta_rank('\2')}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(shape_in(**opened, "tok_embeddings.weight") == Extents{4, 3});
  CHECK(shape_in(**opened, "layers.0.attention.wq.weight") == Extents{4, 3});
  CHECK(shape_in(**opened, "layers.0.attention.wo.weight") == Extents{2, 6});
  CHECK(shape_in(**opened, "norm.weight") == Extents{3});
  CHECK(shape_in(**opened, "rank_1.layers.0.new.weight") == Extents{2, 3});
  const auto values = values_by_name(**opened);
  const Bytes& joined = values.at("layers.0.attention.wo.weight");
  CHECK(joined[11] == std::byte{1});
  CHECK(joined[12] == std::byte{2});
  auto report = check(**opened, {});
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings) CHECK(finding.severity == Severity::kInfo);
}

TEST_CASE("meta llama: a rank's file that is missing is named") {
  auto opened =
      open_checkpoint(memory_directory("ckpt", {{"consolidated.00.pth", meta_rank('\1')},
                                                {"consolidated.02.pth", meta_rank('\2')}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  auto report = check(**opened, {});
  REQUIRE(report.has_value());
  CHECK(std::any_of(report->findings.begin(), report->findings.end(), [](const Finding& finding) {
    return finding.rule == "missing-file" && finding.subjects.front() == "consolidated.01.pth";
  }));
}

TEST_CASE("meta llama: params.json tells a rank's file of the highest number that is missing") {
  auto is_missing = [](const std::string& params) {
    auto opened = open_checkpoint(memory_directory(
        "ckpt", {{"consolidated.00.pth", meta_rank('\1')}, {"params.json", to_bytes(params)}}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    auto report = check(**opened, {});
    REQUIRE(report.has_value());
    return std::any_of(report->findings.begin(), report->findings.end(),
                       [](const Finding& finding) {
                         return finding.rule == "missing-file" &&
                                finding.subjects.front() == "consolidated.01.pth";
                       });
  };
  // wo has three columns.
  CHECK(is_missing(R"({"dim": 6, "n_heads": 2})"));
  CHECK(is_missing(R"({"dim": 4, "n_heads": 2, "head_dim": 3})"));
  CHECK_FALSE(is_missing(R"({"dim": 3, "n_heads": 1})"));
  CHECK_FALSE(is_missing(R"({"dim": 6, "n_heads": 1, "head_dim": 3})"));
  CHECK_FALSE(is_missing("no JSON"));
}

TEST_CASE("meta llama: the embedding's axis follows from its width") {
  CHECK(meta_tensor_split("tok_embeddings.weight", {32000, 2048}, 4096, 2) ==
        TensorSplit::kColumns);
  CHECK(meta_tensor_split("tok_embeddings.weight", {64128, 4096}, 4096, 2) == TensorSplit::kRows);
  CHECK(meta_tensor_split("tok_embeddings.weight", {32000, 1024}, 4096, 2) ==
        TensorSplit::kUnknown);
  CHECK(meta_tensor_split("tok_embeddings.weight", {32000, 1024}, std::nullopt, 2) ==
        TensorSplit::kUnknown);
  CHECK(meta_tensor_split("layers.3.feed_forward.w2.weight", {8, 8}, 8, 2) ==
        TensorSplit::kColumns);
  CHECK(meta_tensor_split("layers.3.attention_norm.weight", {8}, 8, 2) == TensorSplit::kReplicated);
  CHECK_FALSE(parse_meta_file("consolidated.pth").has_value());
  CHECK(parse_meta_file("consolidated.07.pth") == 7);
}
