#include "core/formats/open.h"

#include <sys/stat.h>

#include <filesystem>

#include "core/formats/common/torch_archive.h"
#include "core/formats/dcp/dcp_support.h"
#include "core/make_zip.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

namespace {

using Files = std::vector<std::pair<std::string, Bytes>>;

Result<std::shared_ptr<const Checkpoint>> open_files(Files files) {
  return open_checkpoint(memory_directory("ckpt", std::move(files)));
}
Error error_of(Files files) {
  auto opened = open_files(std::move(files));
  REQUIRE_FALSE(opened);
  return opened.error();
}
Bytes some_metadata() {
  return read_file(metadata_files().front());
}

void put_tensor(const std::string& path, const std::string& fqn) {
  const std::string header = "{\"" + fqn + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  put(path, length + header + std::string(4, '\1'));
}

}  // namespace

TEST_CASE("a directory that is not a checkpoint is recognised by what it is instead") {
  struct Case {
    std::string file;
    ErrorKind kind;
    std::string part;
  };
  const Case cases[] = {
      {"__0_0.distcp", ErrorKind::kDamaged, "no .metadata"},
      {".metadata.tmp", ErrorKind::kDamaged, "the save did not finish"},
      {"step-5/.metadata", ErrorKind::kDamaged, "in step-5"},
      {"_CHECKPOINT_METADATA", ErrorKind::kDamaged, "Orbax"},
      {"0.metadata", ErrorKind::kUnsupported, "PaddlePaddle"},
      {"mp_rank_00_model_states.pt", ErrorKind::kDamaged, "does not begin like a torch.save file"},
      {"model.pt", ErrorKind::kUnsupported, "torch.save"},
      {"pytorch_model-00001-of-00002.bin", ErrorKind::kUnsupported, "Hugging Face"},
      {"pytorch_model.bin.index.json", ErrorKind::kUnsupported, "Hugging Face"},
      {"model.safetensors.index.json", ErrorKind::kUnsupported, "none of the files"},
      {"notes.txt", ErrorKind::kUnsupported, "no checkpoint that Shardwright recognises"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.file);
    Error error = error_of({{c.file, bytes_of("x")}});
    CHECK(error.kind == c.kind);
    CHECK(error.message.find(c.part) != std::string::npos);
    CHECK_FALSE(error.place.file.empty());
  }
  CHECK(error_of({}).kind == ErrorKind::kUnsupported);  // exit 2: the system refused nothing
  CHECK(error_of({}).message.find("no checkpoint here") != std::string::npos);
  CHECK(error_of({{".metadata", {}}}).message == "is empty");
}

TEST_CASE("what other programs write is recognised by its name, in a folder and as a file") {
  const std::pair<const char*, const char*> kinds[] = {
      {"m.onnx", "ONNX"},       {"saved_model.pb", "TensorFlow"},
      {"m.engine", "TensorRT"}, {"m.pdparams", "PaddlePaddle"},
      {"m.pkl", "bare pickle"},
  };
  for (const auto& [name, title] : kinds) {
    CAPTURE(name);
    TemporaryFolder folder;
    put(folder / name, "x");
    for (const std::string& path : {folder.path(), folder / name}) {
      auto opened = open_checkpoint(path);
      REQUIRE_FALSE(opened);
      CHECK(opened.error().kind == ErrorKind::kUnsupported);
      CHECK(opened.error().message.find(title) != std::string::npos);
      CHECK_FALSE(opened.error().advice.empty());
    }
  }
  Error llama = error_of({{"consolidated.00.pth", bytes_of("x")},
                          {"consolidated.01.pth", bytes_of("x")},
                          {"params.json", bytes_of("{}")}});
  CHECK(llama.place.file == "consolidated.00.pth");
  TemporaryFolder folder;
  put(folder / "weights", std::string("tjgg\1\0\0\0", 8));
  auto by_content = open_checkpoint(folder / "weights");
  REQUIRE_FALSE(by_content);
  CHECK(by_content.error().message.find("GGML") != std::string::npos);
}

TEST_CASE("a folder of training without its model is reported as that") {
  for (const char* beside : {"trainer_state.json", "random_states_0.pkl"}) {
    CAPTURE(beside);
    TemporaryFolder folder;
    put(folder / beside, "{}");
    put(folder / "optimizer.pt", "x");
    put(folder / "scheduler.pt", "x");
    auto opened = open_checkpoint(folder.path());
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().message.find("training run") != std::string::npos);
  }
}

TEST_CASE("a run of many steps is its newest one, whatever became of its save") {
  Files run = {{"logs/train.txt", bytes_of("x")},
               {"step_21/.metadata.tmp", bytes_of("x")},
               {"step_22/__0_0.distcp", bytes_of("x")}};
  for (int step = 1; step <= 20; ++step)
    run.emplace_back("step_" + std::to_string(step) + "/.metadata", bytes_of("x"));
  Error error = error_of(run);
  CHECK(error.kind == ErrorKind::kDamaged);
  CHECK(error.message.find("no .metadata (in step_22, the newest step") != std::string::npos);
  CHECK(error.advice.find("step_21, step_20, step_19 and 18 more") != std::string::npos);
}

TEST_CASE("an adapter next to a model is reported, and is the checkpoint where it is alone") {
  const TemporaryFolder folder;
  put_tensor(folder / "adapter_model.safetensors", "q_proj.lora_A.weight");
  auto alone = open_checkpoint(folder / "");
  REQUIRE_MESSAGE(alone.has_value(), alone.error().message);
  CHECK((*alone)->find("q_proj.lora_A.weight").has_value());
  put_tensor(folder / "model.safetensors", "q_proj.weight");
  auto both = open_checkpoint(folder / "");
  REQUIRE_MESSAGE(both.has_value(), both.error().message);
  CHECK((*both)->tensor_count() == 1);
  CHECK((*both)->find("q_proj.weight").has_value());
  const auto told = (*both)->opening_findings();
  REQUIRE(told.size() == 1);
  CHECK(told[0].severity == Severity::kInfo);
  CHECK(told[0].cause.find("adapter_model.safetensors is next to the model") == 0);
  put_tensor(folder / "consolidated.safetensors", "wq.weight");
  CHECK_FALSE(open_checkpoint(folder / "").has_value());
}

TEST_CASE("parts of a model that are missing in a folder are not a save that did not finish") {
  Error error = error_of({{"dcp/.metadata", bytes_of("x")},
                          {"other/.metadata", bytes_of("x")},
                          {"hf/pytorch_model-00001-of-00002.bin", bytes_of("x")}});
  CHECK(error.advice.find("Parts of a model are missing in hf.") != std::string::npos);
  CHECK(error.advice.find("was interrupted") == std::string::npos);
}

TEST_CASE("an index that is named opens the files that it names, whatever else is there") {
  const TemporaryFolder folder;
  for (const std::string form : {"fp16", "fp32"}) {
    put_tensor(folder / (form + "-00001-of-00001.safetensors"), form);
    put(folder / (form + ".safetensors.index.json"), R"({"metadata":{},"weight_map":{")" + form +
                                                         "\":\"" + form +
                                                         "-00001-of-00001.safetensors\"}}");
  }
  for (const std::string form : {"fp16", "fp32"}) {
    CAPTURE(form);
    auto opened = open_checkpoint(folder / (form + ".safetensors.index.json"));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK((*opened)->tensor_count() == 1);
    CHECK((*opened)->find(form).has_value());
  }
}

TEST_CASE("a pipeline of which a part is damaged says which") {
  Error error = error_of({{"model_index.json", bytes_of("{}")},
                          {"unet/diffusion_pytorch_model.safetensors", bytes_of("x")}});
  CHECK(error.kind == ErrorKind::kDamaged);
  CHECK(error.place.file == "unet/diffusion_pytorch_model.safetensors");
}

TEST_CASE(
    "metadata.json next to .metadata means Megatron, and .metadata wins over rank-local ones") {
  auto megatron = open_files({{".metadata", some_metadata()}, {"metadata.json", bytes_of("{}")}});
  REQUIRE(megatron);
  CHECK((*megatron)->format().name == "megatron-dist");
  auto both = open_files({{".metadata", some_metadata()}, {"__0.metadata", bytes_of("x")}});
  REQUIRE(both);
  CHECK((*both)->format().name == "dcp");
}

TEST_CASE(
    "rank-local metadata is merged and of equal boxes the lowest rank's stays, the rest as "
    "copies") {
  DcpMetadata rank;
  rank.tensors.push_back(
      {"shard", Dtype::kFloat32, false, {4}, {{{0}, {2}, {"__0_0.distcp", 0, 9}}}, {}});
  rank.tensors.push_back(
      {"same", Dtype::kFloat32, false, {2}, {{{0}, {2}, {"__0_0.distcp", 9, 9}}}, {}});
  rank.objects.push_back({"step", {"__0_0.distcp", 18, 9}, {}});
  MemorySink zero, one;
  REQUIRE(write_dcp_metadata(rank, zero));
  rank.tensors[0].chunks[0] = {{2}, {2}, {"__1_0.distcp", 0, 9}};
  rank.tensors[1].chunks[0].item.path = "__1_0.distcp";
  rank.objects[0].item.path = "__1_0.distcp";
  REQUIRE(write_dcp_metadata(rank, one));
  auto opened = open_files({{"__1.metadata", one.bytes}, {"__0.metadata", zero.bytes}});
  REQUIRE(opened);
  const Checkpoint& c = **opened;
  CHECK(c.format().name == "dcp-rank-local");
  REQUIRE(c.tensor_count() == 2);
  TensorId shard = *c.find("shard"), same = *c.find("same");
  REQUIRE(c.chunks(shard).size() == 2);
  CHECK(c.writer(c.chunks(shard)[1]) == 1);
  REQUIRE(c.chunks(same).size() == 1);
  CHECK(c.writer(c.chunks(same)[0]) == 0);
  CHECK(c.replicas(c.chunks(shard)[1]).empty());
  auto copies = c.replicas(c.chunks(same)[0]);
  REQUIRE(copies.size() == 1);
  CHECK(copies[0].writer == 1u);
  ItemPlace copy = c.place(copies[0].storage);
  CHECK(c.file(copy.file).path == "__1_0.distcp");
  CHECK(copy.offset == 9);
  REQUIRE(c.objects().size() == 1);
  CHECK(c.file(c.objects()[0].item->file).path == "__0_0.distcp");
}

TEST_CASE("a file of torch.save is not a checkpoint next to an index whose files are gone") {
  MemorySink sink;
  const Bytes pickle = bytes_of("\x80\x02}.");
  REQUIRE(write_torch_archive(sink, {.top = "optimizer", .pickle = payload_of(pickle)}));
  CHECK(open_files({{"optimizer.pt", sink.bytes}}).has_value());
  CHECK(open_files({{"pytorch_model-00001-of-00001.bin", sink.bytes}}).has_value());
  for (const char* beside : {"model.safetensors.index.json", "pytorch_model.bin.index.json",
                             "pytorch_model-00001-of-00002.bin", "__0_0.distcp"}) {
    CAPTURE(beside);
    CHECK_FALSE(open_files({{"optimizer.pt", sink.bytes}, {beside, bytes_of("{}")}}).has_value());
  }
  CHECK_FALSE(open_files({{"pytorch_model-00002-of-00002.bin", sink.bytes}}).has_value());
  auto stopped = open_files({{"__0_0.distcp", bytes_of("x")}, {"common.pt", sink.bytes}});
  REQUIRE_FALSE(stopped.has_value());
  CHECK(stopped.error().kind == ErrorKind::kDamaged);
  CHECK(stopped.error().message.find("no .metadata") != std::string::npos);
  // A subfolder with its own save says nothing about the files around it, and a model in
  // safetensors is whole without a stray file.
  CHECK(open_files({{"optimizer_0/__0_0.distcp", bytes_of("x")},
                    {"optimizer_0/.metadata", some_metadata()},
                    {"model.pt", sink.bytes}})
            .has_value());
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const Bytes model = bytes_of(little(header.size(), 8) + header + "1234");
  CHECK(open_files({{"__0_0.distcp", bytes_of("x")}, {"model.safetensors", model}}).has_value());
}

TEST_CASE("a path may name the metadata file itself") {
  std::string file = metadata_files().front();
  auto by_file = open_checkpoint(file);
  auto by_folder = open_checkpoint(file.substr(0, file.rfind('/')) + "//");
  REQUIRE(by_file);
  REQUIRE(by_folder);
  CHECK(describe(**by_file) == describe(**by_folder));
  CHECK(open_checkpoint("/nowhere/at/all").error().kind == ErrorKind::kIo);
}

TEST_CASE("what training leaves above its steps is not told in place of them") {
  MemorySink sink;
  const Bytes list = bytes_of("\x80\x02].");
  REQUIRE(write_torch_archive(sink, {.top = "training_args", .pickle = payload_of(list)}));
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const Bytes model = bytes_of(little(header.size(), 8) + header + "1234");
  auto opened =
      open_files({{"training_args.bin", sink.bytes}, {"checkpoint-5/model.safetensors", model}});
  REQUIRE(opened);
  REQUIRE((*opened)->opening_findings().size() == 1);
  CHECK((*opened)->opening_findings()[0].cause.find("checkpoint-5") != std::string::npos);
  CHECK(error_of({{"training_args.bin", sink.bytes}}).message.find("but a list") !=
        std::string::npos);
}

TEST_CASE("a file above a checkpoint of another format does not stand for it in silence") {
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const Bytes model = bytes_of(little(header.size(), 8) + header + "1234");
  auto told_of = [&](const char* below) {
    auto opened = open_files({{"stray.safetensors", model}, {below, some_metadata()}});
    REQUIRE(opened);
    const auto findings = (*opened)->opening_findings();
    return std::vector<Finding>(findings.begin(), findings.end());
  };
  auto dcp = told_of("step_10/.metadata");
  REQUIRE(dcp.size() == 1);
  CHECK(dcp[0].severity == Severity::kInfo);
  CHECK(dcp[0].subjects == std::vector<std::string>{"step_10"});
  CHECK(dcp[0].cause.find("step_10 (DCP)") != std::string::npos);
  // Trainers leave the last model in the folder above its earlier steps.
  CHECK(told_of("checkpoint-5/model.safetensors").empty());
}

TEST_CASE("a pipe or a dead link with the name of a checkpoint is reported as what it is") {
  for (const char* name : {"model.pt", "pytorch_model.bin", "model.safetensors"}) {
    CAPTURE(name);
    TemporaryFolder pipes, links;
    const std::string pipe = pipes / name, link = links / name;
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    std::filesystem::create_symlink("not-there", link);
    auto message_of = [&](const std::string& path) {
      auto opened = open_checkpoint(path);
      REQUIRE_FALSE(opened.has_value());
      CHECK(opened.error().place.file.ends_with(name));
      return opened.error().message;
    };
    for (const std::string& path : {pipe, std::string(pipes.path())})
      CHECK(message_of(path) == "is not a regular file");
    for (const std::string& path : {link, std::string(links.path())})
      CHECK(message_of(path) == "is a broken link");
  }
}
