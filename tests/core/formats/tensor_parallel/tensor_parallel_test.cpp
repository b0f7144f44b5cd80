// Files per tensor-parallel rank, put together by hand as vLLM, TensorRT-LLM and DeepSeek's
// convert.py lay them out.
#include "core/formats/tensor_parallel/parallel_open.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/tensor_parallel/parallel_model.h"
#include "core/make_zip.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

using Matrix = std::vector<std::vector<float>>;

// Element (r, c) is 100 * r + c + `begin`.
Matrix matrix(int rows, int columns, float begin = 0) {
  Matrix made;
  for (int r = 0; r < rows; ++r) {
    made.emplace_back();
    for (int c = 0; c < columns; ++c)
      made.back().push_back(begin + 100 * static_cast<float>(r) + static_cast<float>(c));
  }
  return made;
}

Matrix rows_of(const Matrix& all, int first, int count) {
  return Matrix(all.begin() + first, all.begin() + first + count);
}

Matrix columns_of_matrix(const Matrix& all, int first, int count) {
  Matrix made;
  for (const auto& row : all) made.emplace_back(row.begin() + first, row.begin() + first + count);
  return made;
}

Matrix stacked(std::initializer_list<Matrix> parts) {
  Matrix made;
  for (const Matrix& part : parts) made.insert(made.end(), part.begin(), part.end());
  return made;
}

std::string floats_of(const Matrix& values) {
  std::string bytes;
  for (const auto& row : values)
    bytes.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
  return bytes;
}

// A vector is a matrix of one row.
using Tensors = std::map<std::string, Matrix>;

Bytes parallel_file(const Tensors& tensors, const std::string& dtype = "F32") {
  std::string header = "{", data;
  for (const auto& [name, values] : tensors) {
    const std::string bytes = floats_of(values);
    const std::string columns = std::to_string(values[0].size());
    header += (header.size() > 1 ? "," : "") + std::string("\"") + name + R"(":{"dtype":")" +
              dtype + R"(","shape":[)" +
              (values.size() == 1 ? columns : std::to_string(values.size()) + "," + columns) +
              R"(],"data_offsets":[)" + std::to_string(data.size()) + "," +
              std::to_string(data.size() + bytes.size()) + "]}";
    data += bytes;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return to_bytes(little(header.size(), 8) + header + data);
}

// 4 heads of 2 and 2 of keys, a width of 8, an MLP of 6, 10 words padded to 12.
const std::string kVllmConfig =
    R"({"hidden_size":8,"num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":6,)"
    R"("vocab_size":10,"num_hidden_layers":1})";

const std::string kAttention = "model.layers.0.self_attn.";
const std::string kMlp = "model.layers.0.mlp.";

struct WholeModel {
  Matrix q = matrix(8, 8, 1000), k = matrix(4, 8, 2000), v = matrix(4, 8, 3000);
  Matrix gate = matrix(6, 8, 4000), up = matrix(6, 8, 5000);
  Matrix output = matrix(8, 8, 6000), down = matrix(8, 6, 7000), words = matrix(12, 8, 8000);
  Matrix norm = matrix(1, 8, 9000);
};

// Of two or four ranks; keys of two heads are on two of four ranks each.
Tensors vllm_rank(const WholeModel& model, int rank, int ranks) {
  const int key = ranks == 2 ? rank : rank / 2;
  auto rows = [&](const Matrix& all) {
    const int count = static_cast<int>(all.size()) / ranks;
    return rows_of(all, rank * count, count);
  };
  auto columns = [&](const Matrix& all) {
    const int count = static_cast<int>(all[0].size()) / ranks;
    return columns_of_matrix(all, rank * count, count);
  };
  Tensors tensors{
      {kAttention + "qkv_proj.weight",
       stacked({rows(model.q), rows_of(model.k, 2 * key, 2), rows_of(model.v, 2 * key, 2)})},
      {kAttention + "o_proj.weight", columns(model.output)},
      {"model.embed_tokens.weight", rows(model.words)},
      {"model.norm.weight", model.norm}};
  if (ranks == 2) {
    tensors[kMlp + "gate_up_proj.weight"] = stacked({rows(model.gate), rows(model.up)});
    tensors[kMlp + "down_proj.weight"] = columns(model.down);
  }
  return tensors;
}

std::map<std::string, Bytes> vllm_files(int ranks, const std::string& config = kVllmConfig) {
  std::map<std::string, Bytes> files{{"config.json", to_bytes(config)}};
  for (int rank = 0; rank < ranks; ++rank)
    files["model-rank-" + std::to_string(rank) + "-part-0.safetensors"] =
        parallel_file(vllm_rank({}, rank, ranks));
  return files;
}

OpenedCheckpoint open_files(const std::map<std::string, Bytes>& files) {
  return open_checkpoint(memory_directory("engine", {files.begin(), files.end()}));
}

std::shared_ptr<const Checkpoint> opened_files(const std::map<std::string, Bytes>& files) {
  auto opened = open_files(files);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return *opened;
}

void check_values(const Checkpoint& checkpoint, const std::string& name, const Matrix& expected) {
  CAPTURE(name);
  const auto tensor = checkpoint.find(name);
  REQUIRE(tensor.has_value());
  auto values = read_tensor(checkpoint, *tensor);
  REQUIRE(values.has_value());
  CHECK(values->uncovered == 0);
  CHECK((values->bytes == to_bytes(floats_of(expected))));
}

CheckReport report_with_data(const Checkpoint& checkpoint) {
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  return std::move(*report);
}

void check_is_sound(const Checkpoint& checkpoint) {
  for (const Finding& finding : report_with_data(checkpoint).findings) {
    CAPTURE(finding.cause);
    CHECK(finding.severity == Severity::kInfo);
  }
}

bool has_rule(const CheckReport& report, std::string_view rule) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const Finding& finding) { return finding.rule == rule; });
}

}  // namespace

TEST_CASE("tensor parallel: vLLM's parts of two ranks are joined head by head") {
  const auto checkpoint = opened_files(vllm_files(2));
  const WholeModel model;
  CHECK(checkpoint->tensor_count() == 6);
  check_values(*checkpoint, kAttention + "qkv_proj.weight", stacked({model.q, model.k, model.v}));
  check_values(*checkpoint, kAttention + "o_proj.weight", model.output);
  check_values(*checkpoint, kMlp + "gate_up_proj.weight", stacked({model.gate, model.up}));
  check_values(*checkpoint, kMlp + "down_proj.weight", model.down);
  check_values(*checkpoint, "model.embed_tokens.weight", model.words);
  check_values(*checkpoint, "model.norm.weight", model.norm);
  check_is_sound(*checkpoint);
}

TEST_CASE("tensor parallel: keys that two ranks have are copies, and are compared") {
  auto files = vllm_files(4);
  const auto checkpoint = opened_files(files);
  const WholeModel model;
  check_values(*checkpoint, kAttention + "qkv_proj.weight", stacked({model.q, model.k, model.v}));
  check_is_sound(*checkpoint);
  Tensors other = vllm_rank(model, 1, 4);
  other[kAttention + "qkv_proj.weight"][3][0] += 1;  // of k, which rank 0 has too
  files["model-rank-1-part-0.safetensors"] = parallel_file(other);
  CHECK(report_with_data(*opened_files(files)).verdict != Verdict::kClean);
}

TEST_CASE("tensor parallel: a part that sizes do not settle stays its rank's") {
  for (const char* config : {"{}", "[]", "{", R"({"hidden_size":8,"num_attention_heads":4})",
                             R"({"hidden_size":9223372036854775807,"num_attention_heads":-4})"}) {
    CAPTURE(config);
    const auto checkpoint = opened_files(vllm_files(2, config));
    CHECK(checkpoint->find("rank_1." + kMlp + "gate_up_proj.weight").has_value());
    CHECK_FALSE(checkpoint->find(kMlp + "gate_up_proj.weight").has_value());
    check_is_sound(*checkpoint);
  }
}

TEST_CASE("tensor parallel: parts of single ranks are not checked as a whole") {
  const auto is_left_open = [](const Tensors& here) {
    auto opened = open_checkpoint(
        memory_directory("run", {{"model-rank-0-part-0.safetensors", parallel_file(here)},
                                 {"model-rank-1-part-0.safetensors", parallel_file(here)}}));
    REQUIRE(opened.has_value());
    auto report = check(**opened, {});
    REQUIRE(report.has_value());
    return std::any_of(report->unjudged.begin(), report->unjudged.end(), [](const Unjudged& one) {
      return one.what.find("a rank is missing") != std::string::npos;
    });
  };
  CHECK(is_left_open({{kMlp + "down_proj.weight", matrix(8, 3)}}));  // without a config.json
}

TEST_CASE("tensor parallel: a file that is missing is named, at the end of the ranks too") {
  for (const char* file : {"model-rank-0-part-0.safetensors", "model-rank-3-part-0.safetensors"}) {
    CAPTURE(file);
    auto files = vllm_files(4);
    files.erase(file);
    const auto report = report_with_data(*opened_files(files));
    CHECK(has_rule(report, "missing-file"));
  }
}

TEST_CASE("tensor parallel: TensorRT-LLM's layers have their numbers in the whole model") {
  const std::string config =
      R"({"hidden_size":8,"num_attention_heads":4,"num_key_value_heads":4,"head_size":2,)"
      R"("intermediate_size":6,"vocab_size":10,"num_hidden_layers":2,)"
      R"("mapping":{"world_size":4,"tp_size":2,"pp_size":2}})";
  std::map<std::string, Bytes> files{{"config.json", to_bytes(config)}};
  for (int rank = 0; rank < 4; ++rank) {
    const Matrix whole = matrix(6, 8, 1000 * static_cast<float>(rank / 2));
    files["rank" + std::to_string(rank) + ".safetensors"] =
        parallel_file({{"transformer.layers.0.mlp.fc.weight", rows_of(whole, rank % 2 * 3, 3)}});
  }
  const auto checkpoint = opened_files(files);
  check_values(*checkpoint, "transformer.layers.0.mlp.fc.weight", matrix(6, 8));
  check_values(*checkpoint, "transformer.layers.1.mlp.fc.weight", matrix(6, 8, 1000));
  check_is_sound(*checkpoint);
}

TEST_CASE("tensor parallel: DeepSeek's experts are whole with one rank each") {
  std::map<std::string, Bytes> files;
  const Matrix query = matrix(4, 3), output = matrix(3, 4, 500);
  for (int rank = 0; rank < 2; ++rank) {
    const std::string expert = "layers.0.ffn.experts." + std::to_string(rank) + ".w1.weight";
    files["model" + std::to_string(rank) + "-mp2.safetensors"] =
        parallel_file({{"layers.0.attn.wq.weight", rows_of(query, 2 * rank, 2)},
                       {"layers.0.attn.wo.weight", columns_of_matrix(output, 2 * rank, 2)},
                       {expert, matrix(2, 3, 70)},
                       {"norm.weight", matrix(1, 3)}});
  }
  const auto checkpoint = opened_files(files);
  check_values(*checkpoint, "layers.0.attn.wq.weight", query);
  check_values(*checkpoint, "layers.0.attn.wo.weight", output);
  check_values(*checkpoint, "layers.0.ffn.experts.1.w1.weight", matrix(2, 3, 70));
  check_is_sound(*checkpoint);
  files.erase("model1-mp2.safetensors");
  CHECK(has_rule(report_with_data(*opened_files(files)), "missing-file"));
}

TEST_CASE("tensor parallel: only weights of floats are joined by their sizes") {
  ParallelModel model;
  model.width = 8;
  model.inner = 6;
  model.tensor_ranks = 2;
  const Extents local{3, 8};
  CHECK(parallel_part(model, "mlp.up_proj.weight", Dtype::kBfloat16, local, 1).has_value());
  CHECK_FALSE(parallel_part(model, "mlp.up_proj.weight", Dtype::kInt8, local, 1).has_value());
  CHECK_FALSE(parallel_part(model, "mlp.up_proj.weight", Dtype::kBfloat16, {4, 8}, 1).has_value());
  CHECK_FALSE(parallel_part(model, "mlp.up_proj.weight", Dtype::kBfloat16, {}, 1).has_value());
}

TEST_CASE("tensor parallel: every byte wrong and every length of a file are answered") {
  auto files = vllm_files(2);
  for (const char* file : {"config.json", "model-rank-1-part-0.safetensors"}) {
    const Bytes whole = files.at(file);
    const std::size_t most = std::min<std::size_t>(whole.size(), 900);
    for (std::size_t at = 0; at < most; at += 3) {
      auto bent = files;
      bent[file][at] ^= std::byte{0x81};
      auto opened = open_files(bent);
      if (!opened) continue;
      for (std::uint32_t t = 0; t < (*opened)->tensor_count(); ++t)
        (void)read_tensor(**opened, TensorId{t}, 1 << 20);
    }
    for (std::size_t length = 0; length < most; length += 31) {
      auto cut = files;
      cut[file].resize(length);
      (void)open_files(cut);
    }
  }
}
