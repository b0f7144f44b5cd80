// Folders of formats that are not read, and folders whose checkpoints are below.
#include "core/formats/refused_folder.h"

#include <doctest/doctest.h>

#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/torch_file/torch_file_support.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

namespace {

using FolderOfFiles = std::vector<std::pair<std::string, Bytes>>;

Bytes small_model() {
  return to_bytes(state_dict_file(
      pickled_dict({{"w", tensor_call({.count = 2, .sizes = {2}, .strides = {1}, .key = "0"})}}),
      {{"m/data/0", std::string(8, '\1')}}));
}

}  // namespace

TEST_CASE("refused folder: formats that are not read are refused by their name") {
  const std::pair<const char*, const char*> cases[] = {
      {"Data/com.apple.CoreML/weights/weight.bin", "Core ML"},
      {"net.mlmodel", "Core ML"},
      {"model.ncnn.bin", "ncnn"},
      {"openvino_model.bin", "OpenVINO"},
      {"model.xml", "OpenVINO"},
      {"model.rknn", "RKNN"},
      {"model.serialized.bin", "Qualcomm"},
      {"model.cbm", "CatBoost"},
      {"vocab/strings.json", "spaCy"},
      {"streaming_params", "EasyLM"},
  };
  for (const auto& [file, name] : cases) {
    CAPTURE(file);
    auto opened =
        open_checkpoint(memory_directory("ckpt", {{file, to_bytes(std::string(64, '\5'))}}));
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().kind == ErrorKind::kUnsupported);
    CHECK(opened.error().message.find(name) != std::string::npos);
    CHECK_FALSE(opened.error().advice.empty());
    // A checkpoint next to it opens all the same.
    auto beside = open_checkpoint(memory_directory(
        "ckpt", {{file, to_bytes(std::string(64, '\5'))}, {"weights.pt", small_model()}}));
    CHECK(beside.has_value());
  }
}

TEST_CASE("refused folder: folders with files that may be models are named") {
  auto opened = open_checkpoint(memory_directory(
      "en", {{"pos/combined.pt", small_model()}, {"tokenize/combined.pt", small_model()}}));
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().message.find("pos and tokenize") != std::string::npos);
  CHECK(opened.error().advice.find("en/pos") != std::string::npos);
}

TEST_CASE("run folder: the newest step of arrays of zarr without an index is opened") {
  const Bytes array = to_bytes(std::string(
      R"({"chunks": [2], "compressor": null, "dtype": "<f4", "fill_value": null, "filters": null,)"
      R"( "order": "C", "shape": [2], "zarr_format": 2})"));
  FolderOfFiles files;
  for (const char* step : {"checkpoint_900", "checkpoint_1000"}) {
    files.emplace_back(step + std::string("/target.kernel/.zarray"), array);
    files.emplace_back(step + std::string("/target.kernel/0"), to_bytes(std::string(8, '\1')));
  }
  auto opened = open_checkpoint(memory_directory("run", files));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->find("target.kernel").has_value());
  bool is_newest = false;
  for (const Finding& finding : (*opened)->opening_findings())
    is_newest = is_newest || finding.cause.find("Opened checkpoint_1000") != std::string::npos;
  CHECK(is_newest);
}

TEST_CASE("refused file: settings next to the weights are refused with the folder to open") {
  TemporaryFolder folder;
  for (const char* name : {"config.json", "trainer_state.json", "tokenizer.model", "README.md"}) {
    CAPTURE(name);
    put(folder / name, "{}");
    const auto opened = open_checkpoint(folder / name);
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().kind == ErrorKind::kUnsupported);
    CHECK(opened.error().advice.find(folder.path()) != std::string::npos);
  }
}
