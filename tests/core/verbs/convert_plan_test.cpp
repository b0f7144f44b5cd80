// Entries that convert drops, casts and renames, and files next to its results.
#include "core/verbs/convert_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/temporary_folder.h"
#include "core/verbs/refused_by_torch.h"
#include "core/verbs/weight_entries.h"

using namespace shw;
using namespace shw::test;

namespace {

using Names = std::vector<std::string>;

struct HeaderTensor {
  std::string name, dtype = "F32";
};
// A file of such tensors with two elements each.
std::string safetensors_of(const std::vector<HeaderTensor>& tensors, const std::string& format) {
  nlohmann::ordered_json header = {{"__metadata__", {{"format", format}}}};
  std::string data;
  for (const HeaderTensor& tensor : tensors) {
    const std::size_t bytes = tensor.dtype == "F32" ? 8 : tensor.dtype == "F8_E4M3" ? 2 : 4;
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", {2}},
                           {"data_offsets", {data.size(), data.size() + bytes}}};
    data += std::string(bytes, '\x3f');
  }
  const std::string text = header.dump();
  return little(text.size(), 8) + text + data;
}

void put_model(const TemporaryFolder& folder, const std::string& path,
               const std::vector<HeaderTensor>& tensors, const std::string& format = "pt") {
  std::filesystem::create_directories(std::filesystem::path(folder / path).parent_path());
  put(folder / path, safetensors_of(tensors, format));
}

std::string dict_of(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string out = "}(";
  for (const auto& [key, value] : items) out += pickled_text(key) + value;
  return out + "u";
}

std::string file_of_state(const std::string& value) {
  return make_zip({{"m/data.pkl", as_pickle(value)},
                   {"m/version", "3\n"},
                   {"m/data/0", std::string(24, '\1')}});
}

struct Converted {
  verbs::ConvertPlan made;
  std::shared_ptr<const Checkpoint> result;
  RepairResult told;
};
Converted converted(VerbOptions said, const std::string& out) {
  if (said.to.empty()) said.to = "safetensors";
  auto opened = verbs::open(said);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  auto made = verbs::plan_of_convert(*opened, said, nullptr);
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
  auto taken = verbs::repair(*opened, made->plan, {out}, nullptr);
  REQUIRE_MESSAGE(taken.has_value(), taken.error().message);
  auto result = open_checkpoint(out);
  REQUIRE_MESSAGE(result.has_value(), result.error().message);
  return {std::move(*made), *result, std::move(*taken)};
}

Names names_of(const Checkpoint& checkpoint) {
  Names names;
  for (TensorId tensor : checkpoint.tensors()) names.emplace_back(checkpoint.fqn(tensor));
  for (const NonTensorEntry& object : checkpoint.objects()) names.push_back(object.fqn);
  std::sort(names.begin(), names.end());
  return names;
}

VerbOptions of(const std::string& checkpoint) {
  VerbOptions said;
  said.checkpoint = checkpoint;
  return said;
}

Names names_left(const std::string& file, const std::string& value, VerbOptions said = {}) {
  TemporaryFolder folder;
  put(folder / file, file_of_state(value));
  said.checkpoint = folder / file;
  said.weights_only = true;
  return names_of(*converted(said, folder / "out").result);
}

}  // namespace

TEST_CASE("convert: --weights-only keeps what is listed under the key of a model") {
  const std::string tensor = tensor_call({});
  const std::string model = dict_of({{"a.w", tensor}, {"b", tensor}});
  const std::string states = dict_of({{"state", dict_of({{"0", tensor}})}});
  CHECK(names_left("run.pt", dict_of({{"model", model},
                                      {"optimizer", states},
                                      {"ema", model},
                                      {"epoch", "K\3"},
                                      {"noise", tensor}})) == Names{"model.a.w", "model.b"});
  CHECK(names_left("run.pt", dict_of({{"state_dict", model}, {"optimizer_states", states}})) ==
        Names{"state_dict.a.w", "state_dict.b"});
}

TEST_CASE("convert: --weights-only keeps the tensors at the top next to dicts of states") {
  const std::string tensor = tensor_call({});
  CHECK(names_left("run.pt", dict_of({{"a.w", tensor},
                                      {"model.b", tensor},
                                      {"optimizer", dict_of({{"state", dict_of({{"a", tensor}})}})},
                                      {"counters", dict_of({{"seen", tensor}})}})) ==
        Names{"a.w", "model.b"});
  // Two models without a known key are both weights.
  CHECK(names_left("run.pt", dict_of({{"generator", dict_of({{"w", tensor}})},
                                      {"discriminator", dict_of({{"w", tensor}})}})) ==
        Names{"discriminator.w", "generator.w"});
}

TEST_CASE("convert: --weights-only keeps what a quantised weight wraps") {
  auto opened =
      open_checkpoint(std::string(SHW_TEST_DATA) + "/torch-2.15/torch_save/torchao_int8.pt");
  REQUIRE(opened.has_value());
  for (const std::string& name : verbs::entries_that_are_not_weights(**opened).names)
    CHECK_FALSE((*opened)->find(name).has_value());
}

TEST_CASE("convert: --weights-only tells optimizers by names where no structure is kept") {
  TemporaryFolder folder;
  put_model(folder, "hf/model.safetensors",
            {{"layers/dense/vars/0"},
             {"optimizer/vars/0"},
             {"optimizer_0.state.w.exp_avg"},
             {"chained_0.optimizer.state.exp_avg.w"},
             {"optimizers_of_style.w"}});
  VerbOptions said = of(folder / "hf");
  said.weights_only = true;
  CHECK(names_of(*converted(said, folder / "out").result) ==
        Names{"layers/dense/vars/0", "optimizers_of_style.w"});
}

TEST_CASE("convert: --strip and --rename change the beginnings of names") {
  const std::string tensor = tensor_call({});
  const std::string model =
      dict_of({{"_orig_mod.layers.0._fsdp_wrapped_module.w", tensor}, {"_orig_mod.b", tensor}});
  VerbOptions said;
  said.strip = {"model.", "wrappers"};
  CHECK(names_left("run.pt", dict_of({{"model", model}}), said) == Names{"b", "layers.0.w"});
  said.strip = {"_fsdp_wrapped_module"};
  said.rename = {R"(model\._orig_mod\.(.*)=net.$1)"};
  CHECK(names_left("run.pt", dict_of({{"model", model}}), said) ==
        Names{"net.b", "net.layers.0.w"});
  TemporaryFolder folder;
  put_model(folder, "hf/model.safetensors", {{"a"}});
  said = of(folder / "hf");
  said.strip = {"nope."};
  said.to = "dcp";
  auto opened = verbs::open(said);
  REQUIRE(opened.has_value());
  auto made = verbs::plan_of_convert(*opened, said, nullptr);
  REQUIRE(!made.has_value());
  CHECK(made.error().kind == ErrorKind::kUsage);
}

TEST_CASE("convert: --dtype casts floating weights and says it in config.json") {
  TemporaryFolder folder;
  put_model(folder, "hf/model.safetensors",
            {{"a.weight"}, {"mlp.gate.e_score_correction_bias"}, {"rotary.inv_freq"}});
  put(folder / "hf/config.json", R"({"model_type": "own", "dtype": "float32", "eps": 1e-05,
      "text_config": {"torch_dtype": "float32", "far": Infinity}})");
  VerbOptions said = of(folder / "hf");
  said.dtype = "bf16";
  const Converted done = converted(said, folder / "out");
  auto dtype_of = [&](const char* fqn) { return done.result->dtype(*done.result->find(fqn)); };
  CHECK(dtype_of("a.weight") == Dtype::kBfloat16);
  CHECK(dtype_of("mlp.gate.e_score_correction_bias") == Dtype::kFloat32);
  CHECK(dtype_of("rotary.inv_freq") == Dtype::kFloat32);
  REQUIRE(done.made.notes.size() == 1);
  CHECK(done.made.notes.front().find("1 tensor to bfloat16") != std::string::npos);
  // Most elements keep their dtype, so the config is still right.
  CHECK(contents(folder / "out/config.json").find("bfloat16") == std::string::npos);
  put_model(folder, "hf/model.safetensors", {{"a.weight"}, {"b.weight"}, {"rotary.inv_freq"}});
  converted(said, folder / "again");
  const std::string config = contents(folder / "again/config.json");
  CHECK(config.find(R"("dtype": "bfloat16")") != std::string::npos);
  CHECK(config.find(R"("torch_dtype": "bfloat16")") != std::string::npos);
  CHECK(config.find("Infinity") != std::string::npos);
  CHECK(config.find("float32") == std::string::npos);
}

TEST_CASE("convert: --dtype leaves quantised weights and their scales") {
  TemporaryFolder folder;
  put_model(folder, "model.safetensors", {{"norm.weight"}, {"q.weight_scale_inv"}});
  // A matrix of one row, as scales of blocks have.
  std::string text = contents(folder / "model.safetensors");
  put_model(folder, "model.safetensors",
            {{"norm.weight"}, {"q.weight", "F8_E4M3"}, {"q.weight_scale_inv"}});
  text = contents(folder / "model.safetensors");
  text.replace(text.find(R"("F8_E4M3","shape":[2])"), 21, R"("F8_E4M3","shape":[1,2])");
  const std::size_t header = text.find("}}") + 2;
  put(folder / "model.safetensors",
      little(header - 8, 8) + text.substr(8, header - 8) + text.substr(header));
  VerbOptions said = of(folder.path());
  said.dtype = "fp16";
  TemporaryFolder made;
  const Converted done = converted(said, made / "out");
  auto dtype_of = [&](const char* fqn) { return done.result->dtype(*done.result->find(fqn)); };
  CHECK(dtype_of("norm.weight") == Dtype::kFloat16);
  CHECK(dtype_of("q.weight") == Dtype::kFloat8E4m3fn);
  CHECK(dtype_of("q.weight_scale_inv") == Dtype::kFloat32);
  said.dtype = "int8";
  said.to = "safetensors";
  auto opened = verbs::open(said);
  REQUIRE(opened.has_value());
  CHECK(!verbs::plan_of_convert(*opened, said, nullptr).has_value());
}

TEST_CASE("convert: words and patterns choose what is written") {
  TemporaryFolder folder;
  put_model(folder, "hf/model.safetensors", {{"a.weight"}, {"a.bias"}, {"b.weight"}});
  VerbOptions said = of(folder / "hf");
  said.only = "a *.weight";
  CHECK(names_of(*converted(said, folder / "out").result) == Names{"a.weight"});
  said.only = "nothing";
  said.to = "dcp";
  auto opened = verbs::open(said);
  REQUIRE(opened.has_value());
  CHECK(verbs::plan_of_convert(*opened, said, nullptr)->is_empty);
}

TEST_CASE("convert: what libraries read next to the weights is copied into another format") {
  TemporaryFolder folder;
  put_model(folder, "hf/model.safetensors", {{"a"}});
  for (const char* name : {"config.json", "tokenizer.model", "chat_template.jinja", "optimizer.pt",
                           "trainer_state.json", "pytorch_model.bin"})
    put(folder / (std::string("hf/") + name), "{}");
  auto is_there = [&](const char* path) { return std::filesystem::exists(folder / path); };
  VerbOptions said = of(folder / "hf");
  said.to = "dcp";
  converted(said, folder / "dcp");
  CHECK(is_there("dcp/config.json"));
  CHECK(is_there("dcp/tokenizer.model"));
  CHECK(is_there("dcp/chat_template.jinja"));
  CHECK(!is_there("dcp/trainer_state.json"));
  said.to = "safetensors";
  const Converted again = converted(said, folder / "again");
  CHECK(!is_there("again/pytorch_model.bin"));
  CHECK(is_there("again/trainer_state.json"));
  CHECK(again.told.left_out == Names{"pytorch_model.bin"});
  said.weights_only = true;
  converted(said, folder / "weights");
  CHECK(is_there("weights/config.json"));
  CHECK(!is_there("weights/optimizer.pt"));
  CHECK(!is_there("weights/trainer_state.json"));
}

TEST_CASE("convert: files have the names that the model's library looks for") {
  TemporaryFolder folder;
  auto is_there = [&](const char* path) { return std::filesystem::exists(folder / path); };
  put_model(folder, "lora/adapter_model.safetensors", {{"base_model.model.a.lora_A.weight"}});
  put(folder / "lora/adapter_config.json", R"({"peft_type": "LORA"})");
  VerbOptions said = of(folder / "lora");
  said.to = "dcp";
  converted(said, folder / "dcp");
  said = of(folder / "dcp");
  converted(said, folder / "back");
  CHECK(is_there("back/adapter_model.safetensors"));
  CHECK(is_there("back/adapter_config.json"));
  put_model(folder, "hf/model.safetensors", {{"a"}});
  put(folder / "hf/config.json", R"({"model_type": "own"})");
  said = of(folder / "hf");
  said.to = "torch";
  converted(said, folder / "bin");
  CHECK(is_there("bin/pytorch_model.bin"));
}

TEST_CASE("convert: a file that is loaded by its own name keeps it") {
  struct Case {
    std::string file, tensor, kept, as_torch;
  };
  const std::vector<Case> cases{
      {"pytorch_lora_weights.safetensors", "unet.a.lora_A.weight",
       "pytorch_lora_weights.safetensors", "pytorch_lora_weights.bin"},
      {"my_lora.safetensors", "unet.a.lora_A.weight", "my_lora.safetensors", "my_lora.pt"},
      {"consolidated.safetensors", "norm.weight", "consolidated.safetensors",
       "consolidated.00.pth"},
      {"shard-00001-model-00001-of-00001.safetensors", "a", "model.safetensors", "model.pt"}};
  for (const Case& one : cases) {
    CAPTURE(one.file);
    TemporaryFolder folder;
    put_model(folder, "in/" + one.file, {{one.tensor}});
    VerbOptions said = of(folder / "in");
    said.dtype = "bf16";
    converted(said, folder / "out");
    CHECK(std::filesystem::exists(folder / ("out/" + one.kept)));
    said.to = "torch";
    converted(said, folder / "torch");
    CHECK(std::filesystem::exists(folder / ("torch/" + one.as_torch)));
  }
}

TEST_CASE("convert: names that become those of another program take that program's file") {
  TemporaryFolder folder;
  put_model(folder, "in/consolidated.safetensors", {{"norm.weight"}});
  VerbOptions said = of(folder / "in");
  said.rename = {"(.*)=model.$1"};
  converted(said, folder / "out");
  CHECK(std::filesystem::exists(folder / "out/model.safetensors"));
}

TEST_CASE("convert: a LoRA of diffusers has its name again behind another format") {
  TemporaryFolder folder;
  put_model(folder, "in/pytorch_lora_weights.safetensors", {{"unet.a.lora_A.weight"}});
  VerbOptions said = of(folder / "in");
  said.to = "dcp";
  converted(said, folder / "dcp");
  converted(of(folder / "dcp"), folder / "back");
  CHECK(std::filesystem::exists(folder / "back/pytorch_lora_weights.safetensors"));
}

TEST_CASE("convert: the parts of a pipeline stay in their folders") {
  TemporaryFolder folder;
  put_model(folder, "pipe/unet/diffusion_pytorch_model.safetensors", {{"a.w"}, {"b.w"}});
  put_model(folder, "pipe/text_encoder/model.safetensors", {{"c.w"}});
  put(folder / "pipe/unet/config.json", R"({"_class_name": "UNet"})");
  put(folder / "pipe/model_index.json", R"({"_class_name": "Pipeline"})");
  VerbOptions said = of(folder / "pipe");
  said.shard_bytes = 8;
  const Converted done = converted(said, folder / "out");
  CHECK(names_of(*done.result) == Names{"text_encoder.c.w", "unet.a.w", "unet.b.w"});
  for (const char* path :
       {"out/model_index.json", "out/unet/config.json", "out/text_encoder/model.safetensors",
        "out/unet/diffusion_pytorch_model.safetensors.index.json",
        "out/unet/diffusion_pytorch_model-00001-of-00002.safetensors"})
    CHECK_MESSAGE(std::filesystem::exists(folder / path), path);
}

TEST_CASE("convert: a pipeline has its parts again behind a format that keeps them together") {
  TemporaryFolder folder;
  put_model(folder, "pipe/unet/diffusion_pytorch_model.safetensors", {{"a.w"}});
  put_model(folder, "pipe/text_encoder/model.safetensors", {{"c.w"}});
  put(folder / "pipe/unet/config.json", R"({"_class_name": "UNet"})");
  put(folder / "pipe/text_encoder/config.json", R"({"model_type": "clip"})");
  put(folder / "pipe/model_index.json", R"({"_class_name": "Pipeline"})");
  VerbOptions said = of(folder / "pipe");
  said.to = "dcp";
  converted(said, folder / "dcp");
  const Converted back = converted(of(folder / "dcp"), folder / "back");
  CHECK(names_of(*back.result) == Names{"text_encoder.c.w", "unet.a.w"});
  for (const char* path :
       {"back/model_index.json", "back/unet/config.json", "back/text_encoder/model.safetensors",
        "back/unet/diffusion_pytorch_model.safetensors"})
    CHECK_MESSAGE(std::filesystem::exists(folder / path), path);
}

TEST_CASE("convert: the parts of a pipeline have a file of torch.save each") {
  TemporaryFolder folder;
  put_model(folder, "pipe/unet/diffusion_pytorch_model.safetensors", {{"a.w"}, {"b.w"}});
  put_model(folder, "pipe/text_encoder/model.safetensors", {{"c.w"}});
  put(folder / "pipe/unet/config.json", R"({"_class_name": "UNet"})");
  put(folder / "pipe/text_encoder/config.json", R"({"model_type": "clip"})");
  put(folder / "pipe/model_index.json", R"({"_class_name": "Pipeline"})");
  VerbOptions said = of(folder / "pipe");
  said.to = "torch";
  const Converted done = converted(said, folder / "out");
  CHECK(names_of(*done.result) == Names{"text_encoder.c.w", "unet.a.w", "unet.b.w"});
  for (const char* path :
       {"out/model_index.json", "out/unet/config.json", "out/text_encoder/pytorch_model.bin",
        "out/unet/diffusion_pytorch_model.bin"})
    CHECK_MESSAGE(std::filesystem::exists(folder / path), path);
  CHECK(names_of(**open_checkpoint(folder / "out/unet")) == Names{"a.w", "b.w"});
}

TEST_CASE("convert: modules next to a model have a file of torch.save each") {
  TemporaryFolder folder;
  put_model(folder, "st/model.safetensors", {{"w"}});
  put_model(folder, "st/2_Dense/model.safetensors", {{"linear.weight"}});
  put(folder / "st/config.json", R"({"model_type": "bert"})");
  put(folder / "st/2_Dense/config.json", R"({"in_features": 2})");
  put(folder / "st/modules.json", "[]");
  VerbOptions said = of(folder / "st");
  said.to = "torch";
  const Converted done = converted(said, folder / "out");
  CHECK(names_of(*done.result) == Names{"2_Dense.linear.weight", "w"});
  CHECK(names_of(**open_checkpoint(folder / "out/pytorch_model.bin")) == Names{"w"});
  CHECK(std::filesystem::exists(folder / "out/2_Dense/pytorch_model.bin"));
  CHECK(std::filesystem::exists(folder / "out/modules.json"));
}

TEST_CASE("convert: the branches of a Router keep their folders and the list of them") {
  TemporaryFolder folder;
  const std::string query = "query_0_StaticEmbedding", document = "document_0_Transformer";
  put_model(folder, "st/" + query + "/model.safetensors", {{"embedding.weight"}});
  put_model(folder, "st/" + document + "/model.safetensors", {{"w"}});
  put(folder / "st/modules.json", R"([{"path": "", "type": "a.Router"}])");
  put(folder / "st/router_config.json",
      R"({"types": {"query_0_StaticEmbedding": "a.StaticEmbedding",
                    "document_0_Transformer": "a.Transformer"}})");
  VerbOptions said = of(folder / "st");
  said.to = "safetensors";
  const Converted done = converted(said, folder / "out");
  CHECK(names_of(*done.result) == Names{document + ".w", query + ".embedding.weight"});
  for (const std::string& branch : {query, document})
    CHECK(std::filesystem::exists(folder / ("out/" + branch + "/model.safetensors")));
  CHECK(std::filesystem::exists(folder / "out/router_config.json"));
}

TEST_CASE("convert: the format that files of the source say is kept") {
  TemporaryFolder folder;
  put_model(folder, "mlx/model.safetensors", {{"a"}}, "mlx");
  converted(of(folder / "mlx"), folder / "out");
  CHECK(contents(folder / "out/model.safetensors").find(R"("format":"mlx")") != std::string::npos);
}

TEST_CASE("convert: an index of a variant is left out, whose files are not copied") {
  TemporaryFolder folder;
  put_model(folder, "hf/model.safetensors", {{"a"}});
  put(folder / "hf/config.json", R"({"model_type": "llama"})");
  put(folder / "hf/model.safetensors.index.fp16.json",
      R"({"weight_map": {"a": "model.fp16-00001-of-00001.safetensors"}})");
  converted(of(folder / "hf"), folder / "out");
  CHECK(std::filesystem::exists(folder / "out/config.json"));
  CHECK_FALSE(std::filesystem::exists(folder / "out/model.safetensors.index.fp16.json"));
}

TEST_CASE("convert: a checkpoint of torch_checkpointing has its tensors by item and rank") {
  TemporaryFolder folder;
  put(folder / "run.pt", file_of_state(dict_of({{"model", dict_of({{"a.w", tensor_call({})}})},
                                                {"optim", dict_of({{"m", tensor_call({})}})}})));
  VerbOptions said = of(folder / "run.pt");
  said.to = "torch-checkpointing";
  said.shard_bytes = 24;
  const Converted done = converted(said, folder / "out");
  CHECK(names_of(*done.result) == Names{"model.a.w", "optim.m"});
  for (const char* path : {"out/metadata.pkl", "out/model_0.safetensors", "out/optim_0.safetensors",
                           "out/model_1.safetensors", "out/optim_1.safetensors"})
    CHECK_MESSAGE(std::filesystem::exists(folder / path), path);
  for (const Finding& finding : done.result->opening_findings())
    CHECK_MESSAGE(finding.severity == Severity::kInfo, finding.cause);
}

TEST_CASE("convert: a model alone becomes the item model of torch_checkpointing") {
  TemporaryFolder folder;
  put_model(folder, "hf/model.safetensors", {{"lm_head.weight"}, {"norm"}});
  VerbOptions said = of(folder / "hf");
  said.to = "torch-checkpointing";
  const Converted done = converted(said, folder / "out");
  CHECK(names_of(*done.result) == Names{"model.lm_head.weight", "model.norm"});
  said = of(folder / "out");
  CHECK(names_of(*converted(said, folder / "again").result) ==
        Names{"model.lm_head.weight", "model.norm"});
}

TEST_CASE("convert: entries that torch.load refuses by default are named") {
  TemporaryFolder folder;
  const std::string space = "cargparse\nNamespace\n)\x81}(" + pickled_text("lr") + "K\1ub";
  put(folder / "run.pt",
      file_of_state(dict_of({{"w", tensor_call({})}, {"args", space}, {"step", "K\1"}})));
  VerbOptions said = of(folder / "run.pt");
  said.to = "torch";
  auto opened = verbs::open(said);
  REQUIRE(opened.has_value());
  auto made = verbs::plan_of_convert(*opened, said, nullptr);
  REQUIRE(made.has_value());
  REQUIRE(made->notes.size() == 1);
  CHECK(made->notes.front().find("argparse.Namespace") != std::string::npos);
  CHECK(made->notes.front().find("--leave-out args") != std::string::npos);
  said.leave_out = {"args"};
  CHECK(verbs::plan_of_convert(*opened, said, nullptr)->notes.empty());
}
