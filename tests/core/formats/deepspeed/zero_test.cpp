// Checkpoints that real DeepSpeed wrote (tests/data/deepspeed-0.19), whole and damaged.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "core/fixtures.h"
#include "core/formats/deepspeed/zero_names.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

using ZeroFiles = std::vector<std::pair<std::string, Bytes>>;

std::string zero_folder(const std::string& kind) {
  const std::filesystem::path ckpt =
      std::filesystem::path(SHW_TEST_DATA) / "deepspeed-0.19" / kind / "ckpt";
  for (const auto& entry : std::filesystem::directory_iterator(ckpt)) {
    if (entry.is_directory()) return entry.path().string();
  }
  return ckpt.string();
}

ZeroFiles zero_files(const std::string& kind) {
  ZeroFiles files;
  const std::string folder = zero_folder(kind);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const auto bytes = std::as_bytes(std::span(text));
    files.emplace_back(entry.path().string().substr(folder.size() + 1),
                       Bytes(bytes.begin(), bytes.end()));
  }
  return files;
}

std::string fqn_of_truth(const std::string& kind, const std::string& name) {
  if (kind.starts_with("experts")) return name;
  if (kind == "universal") return "optimizer.state." + name;
  for (const std::string state : {"exp_avg", "exp_avg_sq"}) {
    if (name.starts_with(state + "."))
      return "optimizer.state." + name.substr(state.size() + 1) + "." + state;
  }
  return kind == "zero1" ? "optimizer.state." + name + ".fp32" : name;
}

std::size_t above_info(const Checkpoint& checkpoint, Depth depth) {
  auto report = check(checkpoint, {.depth = depth, .spec = nullptr, .mesh = std::nullopt});
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings) {
    if (finding.severity != Severity::kInfo) MESSAGE(finding.rule << ": " << finding.cause);
  }
  return static_cast<std::size_t>(
      std::count_if(report->findings.begin(), report->findings.end(),
                    [](const Finding& one) { return one.severity != Severity::kInfo; }));
}

std::string causes_of(ZeroFiles files) {
  auto opened = open_checkpoint(memory_directory("ckpt", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  auto report = check(**opened, {.depth = Depth::kData, .spec = nullptr, .mesh = std::nullopt});
  REQUIRE(report.has_value());
  std::string causes;
  for (const Finding& finding : report->findings) {
    if (finding.severity != Severity::kInfo) causes += finding.cause + "\n";
  }
  return causes;
}

void erase_rank(ZeroFiles& files, const std::string& rank) {
  std::erase_if(files, [&](const auto& file) {
    return file.first.find("zero_pp_rank_" + rank + "_") != std::string::npos;
  });
}

}  // namespace

TEST_CASE("deepspeed: every tensor of each stage reads as training held it") {
  for (const std::string kind :
       {"zero0", "zero1", "zero3", "universal", "experts", "experts_data_first",
        "experts_stage0_fp32", "experts_stage0_bf16"}) {
    CAPTURE(kind);
    auto opened = open_checkpoint(zero_folder(kind));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    const Checkpoint& checkpoint = **opened;
    std::map<std::string, TensorId> tensors;
    for (TensorId tensor : checkpoint.tensors())
      tensors.emplace(std::string(checkpoint.fqn(tensor)), tensor);
    auto truth =
        read_truth(std::string(SHW_TEST_DATA) + "/deepspeed-0.19/" + kind + "/truth.safetensors");
    REQUIRE(truth.has_value());
    for (const auto& [name, expected] : *truth) {
      CAPTURE(name);
      auto tensor = tensors.find(fqn_of_truth(kind, name));
      REQUIRE(tensor != tensors.end());
      auto values = read_tensor(checkpoint, tensor->second);
      REQUIRE_MESSAGE(values.has_value(), values.error().message);
      CHECK(values->uncovered == 0);
      CHECK(values->dtype == expected.dtype);
      CHECK(values->shape == expected.shape);
      CHECK(values->bytes == expected.bytes);
    }
    CHECK(above_info(checkpoint, Depth::kData) == 0);
  }
}

TEST_CASE("deepspeed: a chunk has the rank whose partition it is in") {
  auto opened = open_checkpoint(zero_folder("zero1"));
  REQUIRE(opened.has_value());
  const Checkpoint& checkpoint = **opened;
  for (TensorId tensor : checkpoint.tensors()) {
    // Rank 0's partition ends after 7 of its 54 elements.
    if (checkpoint.fqn(tensor) != "optimizer.state.layers.1.up.weight.exp_avg") continue;
    std::map<std::uint32_t, std::int64_t> elements;
    for (ChunkId chunk : checkpoint.chunks(tensor))
      elements[checkpoint.writer(chunk).value_or(9)] += *volume(checkpoint.sizes(chunk));
    CHECK(elements == std::map<std::uint32_t, std::int64_t>{{0, 7}, {1, 47}});
  }
}

TEST_CASE("deepspeed: a lost rank costs the experts of the ranks that share its group") {
  for (const auto& [kind, expert] :
       {std::pair{"experts", "2"}, std::pair{"experts_data_first", "1"}}) {
    CAPTURE(kind);
    ZeroFiles files = zero_files(kind);
    erase_rank(files, "1");
    auto opened = open_checkpoint(memory_directory("ckpt", std::move(files)));
    REQUIRE(opened.has_value());
    std::set<std::string> lost;
    for (TensorId tensor : (*opened)->tensors()) {
      const std::string fqn((*opened)->fqn(tensor));
      const std::size_t at = fqn.find("deepspeed_experts.");
      if (at == std::string::npos || !fqn.ends_with(".exp_avg")) continue;
      for (ChunkId chunk : (*opened)->chunks(tensor)) {
        if ((*opened)->writer(chunk) == 1) lost.insert(fqn.substr(at + 18, 1));
      }
    }
    CHECK(lost == std::set<std::string>{expert});
  }
}

TEST_CASE("deepspeed: the steps of the other ranks are compared with the first one's") {
  for (const std::string kind : {"zero1", "zero3"}) {
    CAPTURE(kind);
    auto opened = open_checkpoint(zero_folder(kind));
    REQUIRE(opened.has_value());
    std::size_t copies = 0;
    for (TensorId tensor : (*opened)->tensors()) {
      for (ChunkId chunk : (*opened)->chunks(tensor)) {
        if ((*opened)->replicas(chunk).empty()) continue;
        CHECK((*opened)->fqn(tensor).ends_with(".step"));
        copies += (*opened)->replicas(chunk).size();
      }
    }
    // One step per group of parameters and rank.
    CHECK(copies % ((*opened)->rank_count() - 1) == 0);
    CHECK(copies > 0);
  }
}

TEST_CASE("deepspeed: ranks whose files are missing are named with what is lost") {
  ZeroFiles files = zero_files("zero3");
  erase_rank(files, "1");
  erase_rank(files, "3");
  const std::string causes = causes_of(files);
  CHECK(causes.find("ranks 1 and 3 of 4") != std::string::npos);
  CHECK(causes.find("elements in all") != std::string::npos);
  files = zero_files("zero1");
  erase_rank(files, "0");
  CHECK(causes_of(files).find("rank 0 of 2") != std::string::npos);
}

TEST_CASE("deepspeed: weights without any optimizer file are not lost but cannot resume") {
  ZeroFiles files = zero_files("zero1");
  erase_rank(files, "0");
  erase_rank(files, "1");
  CHECK(causes_of(files).find("cannot resume") != std::string::npos);
  files = zero_files("zero3");
  std::erase_if(
      files, [](const auto& file) { return file.first.find("optim_states") != std::string::npos; });
  CHECK(causes_of(files).find("weights are missing") != std::string::npos);
}

TEST_CASE("deepspeed: files of ranks that a later save does not have are left aside") {
  ZeroFiles files = zero_files("zero1");
  for (const auto& [name, bytes] : zero_files("zero3")) {
    if (name.starts_with("bf16_zero_pp_rank_3_")) files.emplace_back(name, bytes);
  }
  CHECK(causes_of(files).find("left there by another save") != std::string::npos);
}

TEST_CASE("deepspeed: a model states file opened alone says what it is") {
  auto whole = open_checkpoint(zero_folder("zero0") + "/mp_rank_00_model_states.pt");
  REQUIRE(whole.has_value());
  CHECK(above_info(**whole, Depth::kData) == 0);
  auto weights = open_checkpoint(zero_folder("zero1") + "/mp_rank_00_model_states.pt");
  REQUIRE(weights.has_value());
  REQUIRE((*weights)->opening_findings().size() == 1);
  CHECK((*weights)->opening_findings()[0].cause.find("ZeRO stage 1") != std::string::npos);
  auto empty = open_checkpoint(zero_folder("zero3") + "/zero_pp_rank_2_mp_rank_00_model_states.pt");
  REQUIRE(empty.has_value());
  REQUIRE((*empty)->opening_findings().size() == 1);
  CHECK((*empty)->opening_findings()[0].cause.find("holds no weights") != std::string::npos);
  CHECK(above_info(**empty, Depth::kHeaders) == 1);
  auto part =
      open_checkpoint(zero_folder("zero1") + "/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt");
  CHECK_FALSE(part.has_value());
}

TEST_CASE("deepspeed: a changed byte of a pickle is found, and a file cut anywhere") {
  const ZeroFiles whole = zero_files("zero1");
  for (std::size_t f = 0; f < whole.size(); ++f) {
    const Bytes& bytes = whole[f].second;
    for (std::size_t at = 0; at < bytes.size(); at += 61) {
      CAPTURE(whole[f].first);
      CAPTURE(at);
      ZeroFiles changed = whole;
      changed[f].second[at] ^= std::byte{0x10};
      auto opened = open_checkpoint(memory_directory("ckpt", changed));
      if (opened) (void)above_info(**opened, Depth::kHeaders);
      changed = whole;
      changed[f].second.resize(at);
      // Two other files of the step are there, so that it opens.
      CHECK(causes_of(std::move(changed)).find("cannot be read") != std::string::npos);
    }
  }
  ZeroFiles changed = whole;
  for (auto& [name, bytes] : changed) {
    if (name.find("rank_1_") == std::string::npos) continue;
    const std::string key = "exp_avg_sq";
    auto text = std::as_bytes(std::span(key));
    auto at = std::search(bytes.begin(), bytes.end(), text.begin(), text.end());
    REQUIRE(at != bytes.end());
    *at ^= std::byte{1};
  }
  CHECK_FALSE(causes_of(changed).empty());
}

TEST_CASE("deepspeed: a parameter without its folder is missing in the universal form") {
  ZeroFiles files = zero_files("universal");
  std::erase_if(files,
                [](const auto& file) { return file.first.starts_with("zero/head.weight/"); });
  CHECK(causes_of(files).find("zero/NAME/fp32.pt") != std::string::npos);
}

TEST_CASE("deepspeed: placeholders of stage 3 next to a universal form are not weights") {
  ZeroFiles files = zero_files("universal");
  std::erase_if(files, [](const auto& file) { return file.first.ends_with("model_states.pt"); });
  for (auto& [path, bytes] : zero_files("zero3")) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (name.ends_with("model_states.pt")) files.emplace_back(name, std::move(bytes));
  }
  CHECK(causes_of(files).find("no element") == std::string::npos);
  auto opened = open_checkpoint(memory_directory("ckpt", files));
  REQUIRE(opened.has_value());
  CHECK((*opened)->format().name == "deepspeed-universal");
  CHECK_FALSE((*opened)->find("head.weight").has_value());
  CHECK((*opened)->find("optimizer.state.head.weight.fp32").has_value());
}

TEST_CASE("deepspeed: a state that other parameters have is missing in the universal form") {
  ZeroFiles files = zero_files("universal");
  std::erase_if(files, [](const auto& file) { return file.first == "zero/head.bias/exp_avg.pt"; });
  CHECK(causes_of(files).find("zero/head.bias/exp_avg.pt") != std::string::npos);
}

namespace {

const std::string kPipeline = std::string(SHW_TEST_DATA) + "/torch-2.15/neox_pipeline";

}  // namespace

TEST_CASE("deepspeed: layers of a pipeline are joined from their tensor-parallel ranks") {
  auto opened = open_checkpoint(kPipeline + "/ckpt");
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  auto truth = read_truth(kPipeline + "/truth.safetensors");
  REQUIRE(truth.has_value());
  CHECK((*opened)->tensor_count() == truth->size());
  for (TensorId tensor : (*opened)->tensors()) {
    CAPTURE(std::string((*opened)->fqn(tensor)));
    auto expected = truth->find(std::string((*opened)->fqn(tensor)));
    REQUIRE(expected != truth->end());
    auto values = read_tensor(**opened, tensor);
    REQUIRE_MESSAGE(values.has_value(), values.error().message);
    CHECK(values->shape == expected->second.shape);
    CHECK(values->bytes == expected->second.bytes);
  }
  CHECK(above_info(**opened, Depth::kData) == 0);
}

TEST_CASE("deepspeed: files of ranks that a pipeline lacks are missing") {
  const auto causes_without = [](const std::string& part) {
    ZeroFiles files;
    for (const auto& entry : std::filesystem::directory_iterator(kPipeline + "/ckpt")) {
      const std::string name = entry.path().filename().string();
      if (name.find(part) != std::string::npos) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string text(std::istreambuf_iterator<char>(in), {});
      const auto bytes = std::as_bytes(std::span(text));
      files.emplace_back(name, Bytes(bytes.begin(), bytes.end()));
    }
    return causes_of(std::move(files));
  };
  CHECK(causes_without("layer_03-model_01").find("layer_03-model_01-model_states.pt") !=
        std::string::npos);
  // All files of one rank are missing: the shapes show that there were two.
  CHECK(causes_without("-model_01-").find("layer_02-model_01-model_states.pt") !=
        std::string::npos);
}

TEST_CASE("deepspeed: a block that is missing between blocks of a pipeline is reported") {
  const auto causes_of_blocks = [](const std::vector<int>& numbers) {
    ZeroFiles files;
    for (const auto& entry : std::filesystem::directory_iterator(kPipeline + "/ckpt")) {
      const std::string name = entry.path().filename().string(), block = "layer_02";
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string text(std::istreambuf_iterator<char>(in), {});
      const auto bytes = std::as_bytes(std::span(text));
      if (name.starts_with("mp_rank")) files.emplace_back(name, Bytes(bytes.begin(), bytes.end()));
      if (!name.starts_with(block)) continue;
      for (int number : numbers)
        files.emplace_back("layer_0" + std::to_string(number) + name.substr(block.size()),
                           Bytes(bytes.begin(), bytes.end()));
    }
    return causes_of(std::move(files));
  };
  const std::string causes = causes_of_blocks({2, 3, 4, 6, 7});
  CHECK(causes.find("layer_05-model_00-model_states.pt") != std::string::npos);
  CHECK(causes.find("layer_05-model_01-model_states.pt") != std::string::npos);
  CHECK(causes_of_blocks({2, 3, 4, 5, 6}).find("layer_0") == std::string::npos);
  // Layers without parameters have no files.
  CHECK(causes_of_blocks({2, 4, 6, 8}).find("layer_05") == std::string::npos);
}

TEST_CASE(
    "deepspeed: layers of a pipeline have a rank in their file's name only if there are two") {
  for (const char* path : {"layer_03-model_states.pt", "layer_03-model_01-model_states.pt"}) {
    CAPTURE(path);
    const auto name = parse_zero_name(path);
    REQUIRE(name.has_value());
    CHECK(name->is_layer);
    CHECK(name->prefix == "layer_03.");
  }
  CHECK(parse_zero_name("layer_03-model_01-model_states.pt")->mp_rank == 1);
  CHECK_FALSE(parse_zero_name("layer_03-model_.pt").has_value());
}

TEST_CASE("deepspeed: the last block of a pipeline is missed where args.num_layers counts it") {
  const auto causes_with = [](const std::string& layers) {
    const std::string states = pickled_dict({{"module", "N"},
                                             {"dp_world_size", "K\1"},
                                             {"mp_world_size", "K\2"},
                                             {"args", pickled_dict({{"num_layers", layers}})}});
    ZeroFiles files;
    for (const auto& entry : std::filesystem::directory_iterator(kPipeline + "/ckpt")) {
      const std::string name = entry.path().filename().string();
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string text(std::istreambuf_iterator<char>(in), {});
      files.emplace_back(
          name, to_bytes(name.starts_with("mp_rank")
                             ? make_zip({{"m/data.pkl", as_pickle(states)}, {"m/version", "3\n"}})
                             : text));
    }
    return causes_of(std::move(files));
  };
  CHECK(causes_with("K\2").find("num_layers") == std::string::npos);
  CHECK(causes_with("K\3").find("files of 2 blocks are here: one is missing") != std::string::npos);
}

TEST_CASE("deepspeed: a layer whose parameters param_shapes lists has its file or is missing") {
  const auto causes_with = [](const std::vector<std::string>& names) {
    std::vector<std::pair<std::string, std::string>> shapes;
    for (const std::string& name : names) shapes.emplace_back(name, "ctorch\nSize\n((K\1ttR");
    const std::string states = pickled_dict({{"module", "N"},
                                             {"dp_world_size", "K\1"},
                                             {"mp_world_size", "K\2"},
                                             {"param_shapes", "](" + pickled_dict(shapes) + "e"}});
    ZeroFiles files;
    for (const auto& entry : std::filesystem::directory_iterator(kPipeline + "/ckpt")) {
      const std::string name = entry.path().filename().string();
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string text(std::istreambuf_iterator<char>(in), {});
      files.emplace_back(
          name, to_bytes(name.starts_with("mp_rank")
                             ? make_zip({{"m/data.pkl", as_pickle(states)}, {"m/version", "3\n"}})
                             : text));
    }
    return causes_of(std::move(files));
  };
  const std::vector<std::string> listed = {"0.word_embeddings.weight", "2.a.weight", "3.a.weight",
                                           "5.norm.scale", "6.final_linear.weight"};
  CHECK(causes_with(listed).find("layer_0") == std::string::npos);
  std::vector<std::string> more = listed;
  more.emplace_back("7.final_linear.weight");
  CHECK(causes_with(more).find("layer_07-model_00-model_states.pt") != std::string::npos);
  // Numbers that are not those of the layers here say nothing.
  CHECK(causes_with({"10.a.weight", "11.a.weight", "12.a.weight"}).find("layer_1") ==
        std::string::npos);
}

namespace {

void erase_named(ZeroFiles& files, const std::string& part) {
  std::erase_if(files,
                [&](const auto& file) { return file.first.find(part) != std::string::npos; });
}

std::shared_ptr<const Checkpoint> zero_opened(ZeroFiles files) {
  auto opened = open_checkpoint(memory_directory("ckpt", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return *opened;
}

}  // namespace

TEST_CASE("deepspeed: at stage 0 states that expert ranks share are copies of one") {
  const auto opened = zero_opened(zero_files("experts_stage0_bf16"));
  for (const auto& [fqn, copies] :
       {std::pair<const char*, std::size_t>{"head.bias.fp32", 1},
        {"inp.weight.exp_avg", 1},
        {"moe.deepspeed_moe.experts.deepspeed_experts.3.up.bias.fp32", 0}}) {
    CAPTURE(fqn);
    const auto tensor = opened->find(std::string("optimizer.state.") + fqn);
    REQUIRE(tensor.has_value());
    REQUIRE(opened->chunks(*tensor).size() == 1);
    CHECK(opened->replicas(*opened->chunks(*tensor).begin()).size() == copies);
  }
}

TEST_CASE("deepspeed: at stage 0 states keep their numbers where no order gives them names") {
  for (const std::string lost :
       {"expp_rank_0", "expp_rank_1", "layer_0_expert_3", "mp_rank_00_model"}) {
    CAPTURE(lost);
    ZeroFiles files = zero_files("experts_stage0_fp32");
    erase_named(files, lost);
    CHECK_FALSE(causes_of(files).empty());
    const auto opened = zero_opened(std::move(files));
    const std::string rank = lost == "expp_rank_0" ? "1" : "0";
    const auto tensor = opened->find("expp_rank_" + rank + ".optimizer.state.0.exp_avg");
    REQUIRE(tensor.has_value());
    CHECK(read_tensor(*opened, *tensor).has_value());
    CHECK_FALSE(opened->find("optimizer.state.inp.weight.exp_avg").has_value());
  }
}

TEST_CASE("deepspeed: each missing file of experts and of their states is reported") {
  for (const auto& [kind, lost] : std::vector<std::pair<std::string, std::string>>{
           {"experts_stage0_fp32", "expp_rank_0_mp_rank_00_optim_states.pt"},
           {"experts_stage0_fp32", "expp_rank_1_mp_rank_00_optim_states.pt"},
           {"experts_stage0_bf16", "expp_rank_1_mp_rank_00_optim_states.pt"},
           {"experts_stage0_fp32", "layer_0_expert_1_mp_rank_00_model_states.pt"},
           {"experts_stage0_fp32", "layer_0_expert_3_mp_rank_00_model_states.pt"},
           {"experts_stage0_fp32", "mp_rank_MM_model_states.pt"},
           {"experts", "layer_0_expert_1_mp_rank_00_model_states.pt"},
           {"experts_data_first", "layer_0_expert_1_mp_rank_00_model_states.pt"}}) {
    CAPTURE(kind);
    CAPTURE(lost);
    ZeroFiles files = zero_files(kind);
    if (lost.starts_with("mp_rank"))
      std::erase_if(files, [](const auto& file) { return file.first.starts_with("mp_rank_"); });
    else
      erase_named(files, lost);
    CHECK(causes_of(std::move(files)).find(lost) != std::string::npos);
  }
}

TEST_CASE("deepspeed: names of states that follow from the module's order are a note") {
  const auto opened = zero_opened(zero_files("experts_stage0_fp32"));
  std::string causes;
  for (const Finding& finding : opened->opening_findings()) causes += finding.cause + "\n";
  CHECK(causes.find("No file records these names") != std::string::npos);
}

TEST_CASE("deepspeed: a changed byte of expert states does no harm") {
  const ZeroFiles sound = zero_files("experts_stage0_fp32");
  for (std::size_t at = 0; at < 14000; at += 97) {
    CAPTURE(at);
    ZeroFiles files = sound;
    for (auto& [path, bytes] : files) {
      if (path.starts_with("expp_rank_1") && at < bytes.size()) bytes[at] ^= std::byte{0x11};
    }
    auto opened = open_checkpoint(memory_directory("ckpt", std::move(files)));
    if (!opened) continue;
    for (TensorId tensor : (*opened)->tensors()) (void)read_tensor(**opened, tensor);
  }
}
