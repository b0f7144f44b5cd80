// Models that torch.onnx.export and onnx.save wrote (tests/data/onnx), and models with wrong parts.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/data_findings.h"
#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/read_all.h"

using namespace shw;
using namespace shw::test;

namespace {

namespace fs = std::filesystem;

const std::string kOnnxData = std::string(SHW_TEST_DATA) + "/onnx/";

// A field of bytes: its key, length and value. Of less than 128 bytes.
std::string onnx_field(unsigned number, const std::string& value) {
  return std::string(1, static_cast<char>(number << 3 | 2)) +
         std::string(1, static_cast<char>(value.size())) + value;
}
std::string onnx_number(unsigned number, char value) {
  return std::string(1, static_cast<char>(number << 3)) + std::string(1, value);
}
// "w" of two float32; `rest` gives its elements.
std::string onnx_weight(const std::string& rest) {
  return onnx_number(1, 2) + onnx_number(2, 1) + onnx_field(8, "w") + rest;
}
std::string external_entry(const std::string& key, const std::string& value) {
  return onnx_field(13, onnx_field(1, key) + onnx_field(2, value));
}
std::string onnx_graph(const std::string& graph) {
  return onnx_number(1, 8) + onnx_field(7, graph);
}
std::string one_initializer(const std::string& rest) {
  return onnx_graph(onnx_field(5, onnx_weight(rest)));
}
OpenedCheckpoint open_onnx_parts(const std::string& model, const std::string& elements) {
  return open_checkpoint(
      memory_directory("m", {{"model.onnx", to_bytes(model)}, {"data.bin", to_bytes(elements)}}));
}

const std::string kEight(8, '\1');

}  // namespace

TEST_CASE("onnx: initializers are read, in the file and in external data") {
  auto truth = read_truth(kOnnxData + "truth.safetensors");
  REQUIRE(truth.has_value());
  for (const std::string path :
       {"one_file", "external", "one_file/model.onnx", "external/model.onnx"}) {
    CAPTURE(path);
    auto opened = open_checkpoint(kOnnxData + path);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK((*opened)->format().name == "onnx");
    CHECK((*opened)->tensor_count() == truth->size());
    check_elements(**opened, *truth);
    CHECK(findings_above_info(**opened).empty());
    // An initializer whose numbers are stored one by one, and a large Constant.
    const auto& told = (*opened)->opening_findings();
    CHECK(told.size() == (path.starts_with("one_file") ? 2 : 0));
    CHECK(std::any_of(told.begin(), told.end(), [](const Finding& finding) {
            return finding.cause.starts_with("integers in ");
          }) == path.starts_with("one_file"));
  }
}

TEST_CASE("onnx: lost external data is reported, whichever way the model is named") {
  const std::string folder = (fs::temp_directory_path() / "shw_onnx_lost").string();
  fs::remove_all(folder);
  fs::copy(kOnnxData + "external", folder);
  for (const std::uintmax_t size : {std::uintmax_t{100}, std::uintmax_t{0}}) {
    if (size > 0)
      fs::resize_file(folder + "/model.onnx_data", size);
    else
      fs::remove(folder + "/model.onnx_data");
    for (const std::string& path : {folder, folder + "/model.onnx"}) {
      CAPTURE(path);
      auto opened = open_checkpoint(path);
      REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
      CHECK_FALSE(findings_above_info(**opened).empty());
    }
  }
  fs::remove_all(folder);
}

TEST_CASE("onnx: of several models model.onnx is opened, and none where there is no such") {
  const std::string folder = (fs::temp_directory_path() / "shw_onnx_several").string();
  fs::remove_all(folder);
  fs::create_directories(folder);
  fs::copy(kOnnxData + "one_file/model.onnx", folder + "/encoder_model.onnx");
  fs::copy(kOnnxData + "one_file/model.onnx", folder + "/decoder_model.onnx");
  auto several = open_checkpoint(folder);
  REQUIRE_FALSE(several.has_value());
  CHECK(several.error().message.find("several ONNX models") != std::string::npos);
  CHECK(open_checkpoint(folder + "/encoder_model.onnx").has_value());
  fs::copy(kOnnxData + "one_file/model.onnx", folder + "/model.onnx");
  auto opened = open_checkpoint(folder);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  const auto& told = (*opened)->opening_findings();
  CHECK(std::any_of(told.begin(), told.end(), [](const Finding& finding) {
    return finding.cause.find("encoder_model.onnx") != std::string::npos;
  }));
  fs::remove_all(folder);
}

TEST_CASE("onnx: an initializer that its place cannot hold is reported") {
  const std::string in_data = external_entry("location", "data.bin");
  CHECK(findings_above_info(**open_onnx_parts(one_initializer(onnx_field(9, kEight)), "")).empty());
  CHECK(findings_above_info(**open_onnx_parts(one_initializer(in_data), kEight)).empty());
  for (const auto& [rest, elements] : std::vector<std::pair<std::string, std::string>>{
           {onnx_field(9, "1234567"), ""},
           {in_data, "1234567"},
           {in_data + external_entry("length", "4"), kEight},
           {in_data + external_entry("offset", "4"), kEight},
           {in_data + external_entry("offset", "18446744073709551615"), kEight},
           {external_entry("location", "../data.bin"), kEight},
           {external_entry("location", "/etc/passwd"), kEight},
           {external_entry("location", "other.bin"), kEight}}) {
    CAPTURE(rest);
    auto opened = open_onnx_parts(one_initializer(rest), elements);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK_FALSE(findings_above_info(**opened).empty());
  }
}

TEST_CASE("onnx: long names in nested graphs are refused before they fill the memory") {
  const auto wrapped = [](unsigned number, const std::string& value) {
    std::string out(1, static_cast<char>(number << 3 | 2));
    std::size_t length = value.size();
    for (; length >= 128; length >>= 7) out += static_cast<char>((length & 0x7F) | 0x80);
    return out + static_cast<char>(length) + value;
  };
  std::string graph;
  for (int i = 0; i < 4000; ++i) graph += wrapped(5, onnx_number(1, 0) + onnx_number(2, 1));
  for (int depth = 0; depth < 16; ++depth)
    graph = wrapped(
        1, wrapped(3, std::string(4000, 'n')) + wrapped(5, wrapped(1, "body") + wrapped(6, graph)));
  auto opened = open_onnx_parts(onnx_number(1, 8) + wrapped(7, graph), "");
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().kind == ErrorKind::kDamaged);
}

TEST_CASE("onnx: a model that is cut off or malformed is an error") {
  const std::string sound = one_initializer(onnx_field(9, kEight));
  for (std::size_t size = 4; size < sound.size(); ++size) {
    CAPTURE(size);
    auto opened = open_onnx_parts(sound.substr(0, size), "");
    REQUIRE_FALSE(opened.has_value());
  }
  for (const std::string& malformed :
       {onnx_graph(onnx_field(5, onnx_number(1, 2) + "\x4f")),
        onnx_graph(onnx_field(5, onnx_weight(external_entry("offset", "-1")))),
        onnx_number(1, 8) + onnx_field(2, "pytorch")}) {
    auto opened = open_onnx_parts(malformed, "");
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().kind == ErrorKind::kDamaged);
  }
}
