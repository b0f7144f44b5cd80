// Folders that are not checkpoints themselves: runs of steps, and parts of one model.
#include "core/formats/run_folder.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/common/torch_archive.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/torch_file/torch_file_support.h"
#include "core/memory_sink.h"

using namespace shw;
using namespace shw::test;

namespace {

using RunFiles = std::vector<std::pair<std::string, Bytes>>;

Bytes run_bytes(std::string_view text) {
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// One tensor of one element.
Bytes run_model(const std::string& fqn, char value = '\1') {
  const std::string header = "{\"" + fqn + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  return run_bytes(length + header + std::string(4, value));
}

OpenedCheckpoint open_run(RunFiles files) {
  return open_checkpoint(memory_directory("run", std::move(files)));
}

std::vector<std::string> names_in(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (TensorId tensor : checkpoint.tensors()) names.emplace_back(checkpoint.fqn(tensor));
  std::sort(names.begin(), names.end());
  return names;
}

// The finding that says which step was opened.
const Finding& told_in(const Checkpoint& checkpoint) {
  REQUIRE(checkpoint.opening_findings().size() == 1);
  return checkpoint.opening_findings()[0];
}

bool says(const Finding& finding, std::string_view part) {
  return finding.cause.find(part) != std::string::npos;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("run folder: the step that a tracker names is opened and the others are said") {
  auto opened = open_run({{"latest", run_bytes("step_1\n")},
                          {"step_1/model.safetensors", run_model("one")},
                          {"step_2/model.safetensors", run_model("two")}});
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_in(**opened) == Names{"one"});
  const Finding& told = told_in(**opened);
  CHECK(told.severity == Severity::kInfo);
  CHECK(says(told, "step_1, which latest names"));
  CHECK(says(told, "Not opened: step_2"));
  auto megatron = open_run({{"latest_checkpointed_iteration.txt", run_bytes("20")},
                            {"iter_0000020/model.safetensors", run_model("twenty")},
                            {"iter_0000030/model.safetensors", run_model("thirty")}});
  REQUIRE(megatron.has_value());
  CHECK(names_in(**megatron) == Names{"twenty"});
}

TEST_CASE("run folder: without a tracker the greatest number is the newest step") {
  auto opened = open_run({{"checkpoint-9/model.safetensors", run_model("nine")},
                          {"checkpoint-10/model.safetensors", run_model("ten")},
                          {"logs/train.txt", run_bytes("x")}});
  REQUIRE(opened.has_value());
  CHECK(names_in(**opened) == Names{"ten"});
  CHECK(says(told_in(**opened), "checkpoint-9"));
  auto only = open_run(
      {{"weights/model.safetensors", run_model("w")}, {"context/model.yaml", run_bytes("x")}});
  REQUIRE(only.has_value());
  CHECK(says(told_in(**only), "the only checkpoint in this folder"));
}

TEST_CASE("run folder: a tracker that names a folder that is not there is warned of") {
  auto opened =
      open_run({{"latest", run_bytes("step_3")}, {"step_2/model.safetensors", run_model("two")}});
  REQUIRE(opened.has_value());
  const Finding& told = told_in(**opened);
  CHECK(told.severity == Severity::kWarning);
  CHECK(says(told, "latest names step_3, which is not there"));
  // A path out of the folder is not a step's name.
  auto outside = open_run(
      {{"latest", run_bytes("../step_3")}, {"step_2/model.safetensors", run_model("two")}});
  REQUIRE(outside.has_value());
  CHECK(told_in(**outside).severity == Severity::kInfo);
}

TEST_CASE("run folder: a newest step whose save did not finish is not passed over") {
  auto opened = open_run({{"latest", run_bytes("step_100")},
                          {"step_100/__0_0.distcp", run_bytes("x")},
                          {"step_50/model.safetensors", run_model("w")}});
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().kind == ErrorKind::kDamaged);
  CHECK(opened.error().message.find("step_100") != std::string::npos);
  CHECK(opened.error().place.file.starts_with("step_100/"));
  CHECK(opened.error().advice.find("step_50") != std::string::npos);
  CHECK(opened.error().advice.find("run/@latest-complete") != std::string::npos);
}

TEST_CASE("run folder: the parts of a pipeline are one checkpoint") {
  auto opened = open_run({{"model_index.json", run_bytes("{}")},
                          {"unet/diffusion_pytorch_model.safetensors", run_model("w", '\2')},
                          {"vae/diffusion_pytorch_model.safetensors", run_model("w", '\3')},
                          {"scheduler/scheduler_config.json", run_bytes("{}")}});
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_in(**opened) == Names{"unet.w", "vae.w"});
  for (TensorId tensor : (*opened)->tensors()) {
    auto values = read_tensor(**opened, tensor);
    REQUIRE(values.has_value());
    const char expected = (*opened)->fqn(tensor) == "unet.w" ? '\2' : '\3';
    CHECK(values->bytes == Bytes(4, std::byte(expected)));
  }
}

TEST_CASE("run folder: a model and its optimizer in two folders are one checkpoint") {
  auto opened = open_run({{"pytorch_model_fsdp_0/a.safetensors", run_model("model.w")},
                          {"optimizer_0/a.safetensors", run_model("optimizer.state.w.exp_avg")},
                          {"random_states_0.pkl", run_bytes("x")}});
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_in(**opened) == Names{"model.w", "optimizer.state.w.exp_avg"});
  auto same = open_run(
      {{"model/a.safetensors", run_model("w")}, {"optimizer/a.safetensors", run_model("w")}});
  CHECK_FALSE(same.has_value());
}

TEST_CASE("run folder: models side by side that are not of one are not merged") {
  auto opened = open_run(
      {{"llama/model.safetensors", run_model("w")}, {"qwen/model.safetensors", run_model("v")}});
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().message.find("2 checkpoints in subfolders") != std::string::npos);
}

TEST_CASE("run folder: adapters in folders of their names are parts of one model") {
  auto adapters = [](const char* config, const std::string& second) {
    return open_run({{"README.md", run_bytes("x")},
                     {"first/" + std::string(config), run_bytes("{}")},
                     {"first/adapter_model.safetensors", run_model("w", '\2')},
                     {second + "/" + config, run_bytes("{}")},
                     {second + "/adapter_model.safetensors", run_model("w", '\3')}});
  };
  auto opened = adapters("adapter_config.json", "second");
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_in(**opened) == Names{"first.w", "second.w"});
  CHECK_FALSE(adapters("other.json", "second").has_value());
}

TEST_CASE("run folder: models of one run that are numbered are one checkpoint") {
  auto opened = open_run({{"model.safetensors", run_model("w", '\2')},
                          {"model_1.safetensors", run_model("w", '\3')},
                          {"random_states_0.pkl", run_bytes("x")}});
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_in(**opened) == Names{"model.w", "model_1.w"});
  CHECK(told_in(**opened).severity == Severity::kInfo);
  CHECK(says(told_in(**opened), "model_1.safetensors"));
  // By their names these may be two unrelated models.
  auto others = open_run({{"model.safetensors", run_model("generator.w")},
                          {"model_1.safetensors", run_model("critic.w")},
                          {"optimizer_1.bin", run_bytes("x")}});
  REQUIRE(others.has_value());
  CHECK(names_in(**others) == Names{"model.generator.w", "model_1.critic.w"});
  // The relation of other files is unknown.
  CHECK_FALSE(
      open_run({{"model.safetensors", run_model("w")}, {"model_old.safetensors", run_model("w")}})
          .has_value());
  CHECK_FALSE(
      open_run({{"model.safetensors", run_model("w")}, {"model_2.safetensors", run_model("w")}})
          .has_value());
}

TEST_CASE("run folder: numbered models of torch.save are one checkpoint") {
  const std::string one = tensor_call({.count = 1, .sizes = {1}, .strides = {1}});
  const Bytes model = to_bytes(make_zip({{"m/data.pkl", as_pickle(pickled_dict({{"w", one}}))},
                                         {"m/version", "3\n"},
                                         {"m/data/0", std::string(4, '\1')}}));
  auto opened = open_run({{"pytorch_model.bin", model},
                          {"pytorch_model_1.bin", model},
                          {"random_states_0.pkl", run_bytes("x")}});
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_in(**opened) == Names{"pytorch_model.w", "pytorch_model_1.w"});
}

TEST_CASE("run folder: layers in folders next to a model are opened with it") {
  auto opened = open_run({{"modules.json", run_bytes("[]")},
                          {"model.safetensors", run_model("w")},
                          {"2_Dense/model.safetensors", run_model("linear.weight")}});
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_in(**opened) == Names{"2_Dense.linear.weight", "w"});
}

TEST_CASE("run folder: of mlx-lm's steps the final adapters are opened") {
  const std::string key = "model.layers.0.q_proj.lora_a";
  RunFiles files{{"0000200_adapters.safetensors", run_model(key, '\2')},
                 {"0000100_adapters.safetensors", run_model(key, '\1')},
                 {"adapter_config.json", run_bytes("{}")},
                 {"adapters.safetensors", run_model(key, '\3')}};
  auto opened_value = [&]() {
    auto opened = open_run(files);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK((*opened)->tensor_count() == 1);
    CHECK(told_in(**opened).severity == Severity::kInfo);
    CHECK(says(told_in(**opened), "0000100_adapters.safetensors"));
    auto value = read_tensor(**opened, *(*opened)->find(key));
    REQUIRE(value.has_value());
    return std::to_integer<int>(value->bytes[0]);
  };
  CHECK(opened_value() == 3);
  files.back().first = "final_adapters.safetensors";
  CHECK(opened_value() == 3);
  files.pop_back();
  CHECK(opened_value() == 2);
  // With one step there is nothing to choose.
  auto one = open_run({{"0000100_adapters.safetensors", run_model(key)}});
  REQUIRE(one.has_value());
  CHECK((*one)->opening_findings().empty());
}

TEST_CASE("run folder: of several saves of one adapter the one without a number is opened") {
  const std::string key = "lora_unet_x.lora_up.weight";
  RunFiles files{{"lora-000001.safetensors", run_model(key, '\1')},
                 {"lora-000002.safetensors", run_model(key, '\2')},
                 {"lora.safetensors", run_model(key, '\3')}};
  auto opened_value = [&]() {
    auto opened = open_run(files);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK(says(told_in(**opened), "lora-000001.safetensors"));
    auto value = read_tensor(**opened, *(*opened)->find(key));
    REQUIRE(value.has_value());
    return std::to_integer<int>(value->bytes[0]);
  };
  CHECK(opened_value() == 3);
  files.pop_back();
  CHECK(opened_value() == 2);
  // Another name of a tensor, or another stem, and it is not the same model.
  files.back().second = run_model("lora_unet_y.lora_up.weight", '\2');
  files.emplace_back("lora.safetensors", run_model(key, '\3'));
  CHECK_FALSE(open_run(files).has_value());
  files = {{"cat-000001.safetensors", run_model(key, '\1')},
           {"dog.safetensors", run_model(key, '\3')}};
  CHECK_FALSE(open_run(files).has_value());
}

TEST_CASE("run folder: a model and its moving average are parts of one checkpoint") {
  auto opened = open_run(
      {{"unet/model.safetensors", run_model("w")}, {"unet_ema/model.safetensors", run_model("w")}});
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_in(**opened) == Names{"unet.w", "unet_ema.w"});
}

TEST_CASE("run folder: what a trainer leaves above a step does not stand for it") {
  MemorySink sink;
  const Bytes state = run_bytes("\x80\x02}.");
  REQUIRE(write_torch_archive(sink, {.top = "scheduler", .pickle = payload_of(state)}));
  auto opened = open_run({{"scheduler.pt", sink.bytes},
                          {"latest", run_bytes("global_step5")},
                          {"global_step5/model.safetensors", run_model("w")}});
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_in(**opened) == Names{"w"});
  const auto told = (*opened)->opening_findings();
  CHECK(std::any_of(told.begin(), told.end(),
                    [](const Finding& one) { return says(one, "scheduler.pt at the top"); }));
}

TEST_CASE("run folder: of several .ckpt files the newest is opened") {
  auto ckpt = [](const char* top) {
    MemorySink sink;
    const Bytes state = run_bytes("\x80\x02}U\x04stepK\x01s.");
    REQUIRE(write_torch_archive(sink, {.top = top, .pickle = payload_of(state)}));
    return sink.bytes;
  };
  RunFiles files = {{"epoch=1-step=9.ckpt", ckpt("epoch=1-step=9")},
                    {"epoch=1-step=10.ckpt", ckpt("epoch=1-step=10")}};
  auto opened = open_run(files);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(says(told_in(**opened), "Opened epoch=1-step=10.ckpt"));
  files.emplace_back("last.ckpt", ckpt("last"));
  opened = open_run(files);
  REQUIRE(opened.has_value());
  CHECK(says(told_in(**opened), "Opened last.ckpt"));
  files.emplace_back("other.ckpt", ckpt("other"));
  CHECK_FALSE(open_run(files).has_value());
  files.emplace_back("model.ckpt", ckpt("model"));
  opened = open_run(files);
  REQUIRE(opened.has_value());
  CHECK(says(told_in(**opened), "Opened model.ckpt, the model by its name"));
}

namespace {

// A file of torch.save with one tensor of one element.
Bytes run_torch_model() {
  return run_bytes(state_dict_file(pickled_dict({{"weight", tensor_call({})}}),
                                   {{"m/data/0", std::string(24, '\1')}}));
}

}  // namespace

TEST_CASE("run folder: steps of Lightning and of plain loops open from the folder above them") {
  for (const char* below : {"lightning_logs/version_0/checkpoints/epoch=1-step=8.ckpt",
                            "step_20/model.pt", "out/final/lit_model.pth"}) {
    CAPTURE(below);
    auto opened = open_run({{below, run_torch_model()}, {"hparams.yaml", run_bytes("a: 1")}});
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK(names_in(**opened) == Names{"weight"});
  }
  auto newest = open_run({{"step_9/model.pt", run_torch_model()},
                          {"step_9/optimizer.pt", run_torch_model()},
                          {"step_10/model.pt", run_torch_model()},
                          {"step_10/optimizer.pt", run_torch_model()}});
  REQUIRE_MESSAGE(newest.has_value(), newest.error().message);
  CHECK(told_in(**newest).subjects == Names{"step_9"});
}

TEST_CASE("run folder: of files of one model the newest by its name is opened") {
  const Bytes more = run_bytes(
      state_dict_file(pickled_dict({{"exp_avg", tensor_call({})}, {"weight", tensor_call({})}}),
                      {{"m/data/0", std::string(24, '\1')}}));
  const auto newest_of = [&](const char* first, const char* second) {
    auto opened = open_run({{first, run_torch_model()}, {second, more}});
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    return told_in(**opened).cause;
  };
  CHECK(newest_of("epoch_9.pth", "epoch_10.pth").starts_with("Opened epoch_10.pth,"));
  CHECK(newest_of("checkpoint-3.pth.tar", "last.pth.tar").starts_with("Opened last.pth.tar,"));
  CHECK(newest_of("ep0-ba10-rank0.pt", "latest-rank0.pt").starts_with("Opened latest-rank0.pt,"));
  CHECK(newest_of("ep0-ba9-rank0.pt", "ep1-ba10-rank0.pt").starts_with("Opened ep1-ba10-rank0.pt"));
  CHECK_FALSE(newest_of("model_rank1.pt", "model_rank2.pt").starts_with("Opened"));
  CHECK_FALSE(newest_of("ep0.pt", "ep1.pt").starts_with("Opened"));
}

TEST_CASE("run folder: what training alone left below does not make a checkpoint") {
  auto opened = open_run({{"state/scheduler.pt", run_torch_model()}, {"a.txt", run_bytes("x")}});
  CHECK_FALSE(opened.has_value());
}

TEST_CASE("run folder: models next to a trainer's states are of one step") {
  auto opened = open_run({{"unet/diffusion_pytorch_model.safetensors", run_model("a")},
                          {"unet_ema/diffusion_pytorch_model.safetensors", run_model("a")},
                          {"optimizer.bin", run_torch_model()},
                          {"random_states_0.pkl", run_bytes("x")}});
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_in(**opened) == Names{"unet.a", "unet_ema.a"});
}

TEST_CASE("run folder: a pipeline is opened where one file of all of it is next to") {
  auto opened = open_run({{"model_index.json", run_bytes("{}")},
                          {"whole-v1.safetensors", run_model("x")},
                          {"vae/diffusion_pytorch_model.safetensors", run_model("a")},
                          {"vae/diffusion_pytorch_model.fp16.safetensors", run_model("a", '\2')}});
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_in(**opened) == Names{"vae.a"});
  const auto& findings = (*opened)->opening_findings();
  CHECK(std::all_of(findings.begin(), findings.end(),
                    [](const Finding& one) { return one.severity == Severity::kInfo; }));
  CHECK(std::any_of(findings.begin(), findings.end(), [](const Finding& one) {
    return one.subjects == Names{"whole-v1.safetensors"};
  }));
}

TEST_CASE("run folder: of a model's variants the one without an error is opened") {
  for (const char* other : {"model.fp16.safetensors", "model.fp16-00001-of-00001.safetensors",
                            "model.non_ema.safetensors"}) {
    CAPTURE(other);
    auto opened = open_run({{"model.safetensors", run_model("a")}, {other, run_model("a", '\2')}});
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK(told_in(**opened).subjects == Names{other});
    CHECK(told_in(**opened).severity == Severity::kInfo);
  }
  auto alone = open_run({{"model.fp16.safetensors", run_model("a")}});
  REQUIRE(alone.has_value());
  CHECK((*alone)->opening_findings().empty());
  // The names do not tell which of the two is meant.
  CHECK_FALSE(open_run({{"model.fp16.safetensors", run_model("a")},
                        {"model.fp32.safetensors", run_model("a")}})
                  .has_value());
  // A dot in the name of another model does not make it a variant.
  CHECK_FALSE(
      open_run({{"mine.safetensors", run_model("a")}, {"mine.v2.safetensors", run_model("a")}})
          .has_value());
}

TEST_CASE("run folder: of a hub's cache the revision that refs/main names is opened") {
  const RunFiles snapshots = {{"snapshots/aa11/model.safetensors", run_model("a")},
                              {"snapshots/bb22/model.safetensors", run_model("b")}};
  RunFiles cache = snapshots;
  cache.push_back({"refs/main", run_bytes("bb22\n")});
  auto opened = open_run(cache);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_in(**opened) == Names{"b"});
  CHECK(says(told_in(**opened), "refs/main"));
  CHECK(says(told_in(**opened), "snapshots/aa11"));
  for (const char* other : {"cc33", "../bb22", ""}) {
    cache.back().second = run_bytes(other);
    CHECK_FALSE(open_run(cache).has_value());
  }
}
