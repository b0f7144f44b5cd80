// Megatron's `torch` format, from files that torch.save wrote with its names
// (tests/data/torch-2.15).
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/megatron_axes.h"
#include "core/formats/megatron_legacy/legacy_layers.h"
#include "core/formats/megatron_legacy/legacy_names.h"
#include "core/formats/open.h"
#include "core/formats/torch_file/torch_file_support.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

std::string megatron_folder() {
  return std::string(SHW_TEST_DATA) + "/torch-2.15/megatron_legacy";
}

using MegatronFiles = std::vector<std::pair<std::string, Bytes>>;

MegatronFiles megatron_files() {
  MegatronFiles files;
  const std::filesystem::path top = megatron_folder() + "/ckpt/iter_0000100";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const auto bytes = std::as_bytes(std::span(text));
    files.emplace_back(std::filesystem::relative(entry.path(), top).string(),
                       Bytes(bytes.begin(), bytes.end()));
  }
  return files;
}

// Findings above info, and questions left open.
std::vector<Finding> megatron_findings(MegatronFiles files) {
  auto opened = open_checkpoint(memory_directory("ckpt", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(**opened, options);
  REQUIRE(report.has_value());
  std::vector<Finding> told;
  for (Finding& finding : report->findings) {
    if (finding.severity != Severity::kInfo || finding.rule == "not-looked-at")
      told.push_back(std::move(finding));
  }
  return told;
}

}  // namespace

TEST_CASE("megatron torch format: ranks of two stages and two parts are one model") {
  auto opened = open_checkpoint(megatron_folder() + "/ckpt");
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  auto truth = read_truth(megatron_folder() + "/truth.safetensors");
  REQUIRE(truth.has_value());
  std::size_t compared = 0;
  for (TensorId tensor : (*opened)->tensors()) {
    const std::string fqn((*opened)->fqn(tensor));
    CAPTURE(fqn);
    auto expected = truth->find(fqn);
    if (expected == truth->end()) continue;
    auto values = read_tensor(**opened, tensor);
    REQUIRE_MESSAGE(values.has_value(), values.error().message);
    CHECK(values->uncovered == 0);
    CHECK(values->bytes == expected->second.bytes);
    ++compared;
  }
  CHECK(compared == truth->size());
  CHECK(megatron_findings(megatron_files()).empty());
}

TEST_CASE("megatron torch format: each rank that wrote a chunk is known") {
  auto opened = open_checkpoint(memory_directory("ckpt", megatron_files()));
  REQUIRE(opened.has_value());
  const Checkpoint& checkpoint = **opened;
  auto writers = [&](const char* fqn) {
    std::vector<std::uint32_t> out;
    for (ChunkId chunk : checkpoint.chunks(*checkpoint.find(fqn)))
      out.push_back(checkpoint.writer(chunk).value_or(99));
    return out;
  };
  CHECK(writers("model.language_model.output_layer.weight") == std::vector<std::uint32_t>{2, 3});
  // Gate and up of each rank.
  CHECK(writers("model.language_model.encoder.layers.0.mlp.dense_h_to_4h.weight") ==
        std::vector<std::uint32_t>{0, 0, 1, 1});
  CHECK(writers("model.language_model.encoder.layers.3.input_norm.weight") ==
        std::vector<std::uint32_t>{2});
}

TEST_CASE("megatron torch format: a rank's file that is missing is named") {
  for (std::size_t lost = 0; lost < megatron_files().size(); ++lost) {
    MegatronFiles files = megatron_files();
    const std::string path = files[lost].first;
    CAPTURE(path);
    files.erase(files.begin() + static_cast<std::ptrdiff_t>(lost));
    const auto told = megatron_findings(std::move(files));
    CHECK(std::any_of(told.begin(), told.end(), [&](const Finding& finding) {
      return finding.rule == "missing-file" && finding.subjects.front() == path;
    }));
  }
}

TEST_CASE("megatron torch format: an optimizer's file that one rank lacks is named") {
  MegatronFiles files = megatron_files();
  const std::string name = "/distrib_optim.pt";
  const auto folder_of = [](const std::string& path) { return path.substr(0, path.rfind('/')); };
  std::string lost;
  for (std::size_t i = 0, count = files.size(); i < count; ++i) {
    if (!files[i].first.ends_with("/model_optim_rng.pt")) continue;
    const std::string path = folder_of(files[i].first) + name;
    if (lost.empty())
      lost = path;
    else
      files.emplace_back(path, Bytes(files[i].second));
  }
  const auto told = megatron_findings(std::move(files));
  CHECK(std::any_of(told.begin(), told.end(), [&](const Finding& finding) {
    return finding.rule == "missing-file" && finding.subjects.front() == lost;
  }));
}

TEST_CASE(
    "megatron torch format: a file that is truncated or bent is never read wrongly in silence") {
  const MegatronFiles whole_files = megatron_files();
  auto values_of = [](const Checkpoint& checkpoint) {
    std::map<std::string, Bytes> values;
    for (TensorId tensor : checkpoint.tensors()) {
      auto read = read_tensor(checkpoint, tensor);
      values[std::string(checkpoint.fqn(tensor))] = read ? read->bytes : Bytes{};
    }
    return values;
  };
  const auto before = values_of(**open_checkpoint(memory_directory("ckpt", whole_files)));
  const std::size_t length = whole_files[1].second.size();
  for (std::size_t at = 0; at < length; at += 97) {
    CAPTURE(at);
    MegatronFiles cut = whole_files;
    cut[1].second.resize(at);
    CHECK_FALSE(megatron_findings(std::move(cut)).empty());
    MegatronFiles bent = whole_files;
    bent[1].second[at] ^= std::byte{0x41};
    auto opened = open_checkpoint(memory_directory("ckpt", bent));
    if (!opened || values_of(**opened) == before) continue;
    CHECK_FALSE(megatron_findings(std::move(bent)).empty());
  }
}

TEST_CASE("megatron torch format: the axis of a parameter follows from its layer") {
  const std::pair<const char*, TensorSplit> cases[] = {
      {"decoder.layers.0.self_attention.linear_qkv.weight", TensorSplit::kRows},
      {"decoder.layers.0.self_attention.linear_qkv.bias", TensorSplit::kRows},
      {"decoder.layers.0.self_attention.linear_qkv.layer_norm_weight", TensorSplit::kReplicated},
      {"decoder.layers.0.self_attention.linear_proj.weight", TensorSplit::kColumns},
      {"decoder.layers.0.self_attention.linear_proj.bias", TensorSplit::kReplicated},
      {"encoder.layers.0.self_attention.dense.weight", TensorSplit::kColumns},
      {"pooler.dense.weight", TensorSplit::kUnknown},
      {"decoder.layers.0.mlp.linear_fc1.weight", TensorSplit::kGatedRows},
      {"decoder.layers.0.mlp.linear_fc1.bias", TensorSplit::kGatedRows},
      {"decoder.layers.0.mlp.experts.linear_fc2.weight3", TensorSplit::kColumns},
      {"decoder.layers.0.mlp.router.weight", TensorSplit::kReplicated},
      {"embedding.word_embeddings.weight", TensorSplit::kRows},
      {"embedding.position_embeddings.weight", TensorSplit::kReplicated},
      {"decoder.final_layernorm.bias", TensorSplit::kReplicated},
      {"decoder.layers.0.mixer.in_proj.weight", TensorSplit::kUnknown},
  };
  for (const auto& [name, cut] : cases) {
    CAPTURE(name);
    CHECK(tensor_split(name, true) == cut);
  }
  CHECK(tensor_split("mlp.linear_fc1.weight", false) == TensorSplit::kRows);
  CHECK(tensor_split("mlp.linear_fc1.weight", std::nullopt) == TensorSplit::kUnknown);
  CHECK(local_expert("mlp.experts.local_experts.12.linear_fc1.weight")->number == 12);
  CHECK(local_expert("mlp.experts.linear_fc1.weight7")->number == 7);
  CHECK_FALSE(local_expert("mlp.linear_fc1.weight").has_value());
}

TEST_CASE("megatron torch format: layers are numbered through uneven and interleaved stages") {
  LegacyLayers uneven;
  for (std::uint32_t stage = 0; stage < 3; ++stage) uneven.add_stage(stage);
  // The first stage has only the embedding.
  for (const char* name : {"decoder.layers.0.w", "decoder.layers.1.w"}) uneven.add(name, 0, 1);
  for (const char* name : {"decoder.layers.0.w", "decoder.layers.2.w"}) uneven.add(name, 0, 2);
  uneven.add("mtp.layers.0.w", 0, 2);
  uneven.finish(1, 3);
  CHECK(uneven.whole_name("decoder.layers.2.w", 0, 2) == "decoder.layers.4.w");
  CHECK(uneven.whole_name("decoder.layers.0.w", 0, 1) == "decoder.layers.0.w");
  CHECK(uneven.whole_name("mtp.layers.0.w", 0, 2) == "mtp.layers.0.w");

  LegacyLayers interleaved;
  for (std::uint32_t stage = 0; stage < 2; ++stage) {
    interleaved.add_stage(stage);
    for (std::uint32_t chunk = 0; chunk < 2; ++chunk) interleaved.add("layers.0.w", chunk, stage);
  }
  interleaved.finish(2, 2);
  CHECK(interleaved.whole_name("layers.0.w", 0, 1) == "layers.1.w");
  CHECK(interleaved.whole_name("layers.0.w", 1, 0) == "layers.2.w");
  CHECK(interleaved.whole_name("layers.0.w", 1, 1) == "layers.3.w");

  LegacyLayers whole_numbers;
  for (std::uint32_t stage = 0; stage < 2; ++stage) whole_numbers.add_stage(stage);
  whole_numbers.add("layers.0.w", 0, 0);
  whole_numbers.add("layers.1.w", 0, 1);
  whole_numbers.finish(1, 2);
  CHECK(whole_numbers.whole_name("layers.1.w", 0, 1) == "layers.1.w");
}

TEST_CASE(
    "megatron torch format: folders are distinguished by what args say of their second number") {
  const auto folder = parse_legacy_folder("mp_rank_01_003");
  REQUIRE(folder.has_value());
  CHECK(legacy_place(*folder, {2, 4, 1}) == LegacyPlace{1, 3, 0});
  CHECK(legacy_place(*folder, {2, 1, 4}) == LegacyPlace{1, 0, 3});
  CHECK(legacy_folder_name({1, 3, 2}, {2, 4, 4}) == "mp_rank_01_003_002");
  CHECK(legacy_folder_name({1, 0, 2}, {2, 1, 4}) == "mp_rank_01_002");
  for (const char* name : {"mp_rank_", "mp_rank_x", "mp_rank_1_", "mp_rank_1_2_3_4", "rank_1"})
    CHECK_FALSE(parse_legacy_folder(name).has_value());
}

TEST_CASE("megatron torch format: a rank's file of another iteration is named") {
  auto told = [](const std::vector<int>& iterations) {
    MegatronFiles files;
    for (std::size_t rank = 0; rank < iterations.size(); ++rank) {
      const std::string number = std::string("K") + static_cast<char>(iterations[rank]);
      const std::string model = pickled_dict({{"weight", tensor_call({"torch\nFloatStorage\n"})}});
      const std::string file =
          state_dict_file(pickled_dict({{"model", model}, {"iteration", number}}),
                          {{"m/data/0", std::string(24, '\1')}});
      files.emplace_back("mp_rank_0" + std::to_string(rank) + "/model_optim_rng.pt",
                         to_bytes(file));
    }
    return megatron_findings(std::move(files));
  };
  CHECK(told({100, 100, 100}).empty());
  const auto mixed = told({100, 90, 100});
  REQUIRE(mixed.size() == 1);
  CHECK(mixed.front().rule == "mixed-saves");
  CHECK(mixed.front().subjects == std::vector<std::string>{"mp_rank_01/model_optim_rng.pt"});
}
