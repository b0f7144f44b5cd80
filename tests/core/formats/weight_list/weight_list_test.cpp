// Models of CTranslate2 that the library wrote, and checkpoints of MindSpore made by hand.
#include <doctest/doctest.h>

#include <cstring>

#include "core/formats/common/byte_buffer.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/weight_list/weight_list.h"
#include "core/rules/check.h"

using namespace shw;

namespace {

using ListFiles = std::vector<std::pair<std::string, Bytes>>;

std::string bytes_text(const ByteBuffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.view().data()), buffer.view().size()};
}

std::string listed_text(std::string_view text) {
  const std::string whole = std::string(text) + '\0';
  return bytes_text(ByteBuffer().number(static_cast<std::uint16_t>(whole.size())).text(whole));
}

// One array of float32 values 1, 2, ... and another name of it.
std::string ctranslate2_file(std::uint32_t version = 6, std::uint32_t bytes = 24) {
  ByteBuffer file;
  file.number(version).text(listed_text("WhisperSpec")).number(std::uint32_t{3});
  file.number(std::uint32_t{1}).text(listed_text("encoder/layer_0/weight"));
  file.number(std::uint8_t{2}).number(std::uint32_t{2}).number(std::uint32_t{3});
  file.number(std::uint8_t{0}).number(bytes);
  for (float value = 1; value < 7; ++value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    file.number(bits);
  }
  file.number(std::uint32_t{1}).text(listed_text("decoder/weight"));
  file.text(listed_text("encoder/layer_0/weight"));
  return bytes_text(file);
}

std::string proto(int field, const std::string& content) {
  REQUIRE(content.size() < 128);
  return std::string(1, static_cast<char>(field << 3 | 2)) + static_cast<char>(content.size()) +
         content;
}

std::string mindspore_value(const std::string& name, const std::string& type,
                            const std::string& dims, const std::string& content) {
  return proto(1, proto(1, name) + proto(2, dims + proto(2, type) + proto(3, content)));
}

Bytes list_bytes(const std::string& text) {
  Bytes out(text.size());
  std::memcpy(out.data(), text.data(), text.size());
  return out;
}

std::vector<float> floats_of(const Checkpoint& checkpoint, std::string_view name) {
  const auto id = checkpoint.find(name);
  REQUIRE(id.has_value());
  auto read = read_tensor(checkpoint, *id);
  REQUIRE(read.has_value());
  std::vector<float> out(read->bytes.size() / sizeof(float));
  std::memcpy(out.data(), read->bytes.data(), read->bytes.size());
  return out;
}

}  // namespace

TEST_CASE("ctranslate2: model.bin is read with its aliases, in a folder and by its path") {
  const ListFiles files = {{"config.json", list_bytes("{}")},
                           {"model.bin", list_bytes(ctranslate2_file())}};
  auto opened = open_checkpoint(memory_directory("ckpt", files));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->format().name == "ctranslate2");
  for (const char* name : {"encoder/layer_0/weight", "decoder/weight"})
    CHECK(floats_of(**opened, name) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(**opened, options);
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings) {
    CAPTURE(finding.cause);
    CHECK(finding.severity == Severity::kInfo);
  }
}

TEST_CASE("ctranslate2: what the library wrote is read") {
  auto opened = open_checkpoint(std::string(SHW_TEST_DATA) + "/weight_list/ctranslate2/model.bin");
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  const Checkpoint& model = **opened;
  CHECK(model.dtype(*model.find("a/weight")) == Dtype::kInt8);
  CHECK(floats_of(model, "a/weight_scale") == std::vector<float>(4, 1));
  CHECK(floats_of(model, "a/bias") == std::vector<float>{0, 1, 2, 3});
  // An alias has the scale of its weight too.
  CHECK(floats_of(model, "b/weight_scale") == std::vector<float>(4, 1));
  auto report = check(model, {});
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings) {
    CAPTURE(finding.cause);
    CHECK(finding.severity == Severity::kInfo);
  }
  const auto weight = read_tensor(model, *model.find("b/weight"));
  REQUIRE(weight.has_value());
  for (std::size_t i = 0; i < weight->bytes.size(); ++i)
    CHECK(static_cast<int>(static_cast<std::int8_t>(weight->bytes[i])) ==
          static_cast<int>(i % 8) * 127 / 7);
}

TEST_CASE("ctranslate2: a cut file, a wrong length and an old form are said") {
  const std::string whole = ctranslate2_file();
  for (std::size_t length = 24; length < whole.size(); ++length) {
    CAPTURE(length);
    auto opened = open_checkpoint(
        memory_directory("ckpt", ListFiles{{"model.bin", list_bytes(whole.substr(0, length))}}));
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().kind == ErrorKind::kDamaged);
  }
  auto old = open_checkpoint(
      memory_directory("ckpt", ListFiles{{"model.bin", list_bytes(ctranslate2_file(2))}}));
  REQUIRE_FALSE(old.has_value());
  CHECK(old.error().message.find("version 2") != std::string::npos);
  auto wrong = open_checkpoint(
      memory_directory("ckpt", ListFiles{{"model.bin", list_bytes(ctranslate2_file(6, 20))}}));
  CHECK((!wrong || !(*wrong)->opening_findings().empty()));
}

TEST_CASE("mindspore: a checkpoint is read, and a cut one is an error") {
  const std::string content("\0\0\x80\x3f\0\0\0\x40", 8);  // 1, 2
  const std::string first = mindspore_value("conv1.weight", "Float32", "\x08\x02", content);
  const std::string second = mindspore_value("fc.weight", "Float32", "\x0a\x02\x02\x01", content);
  const std::string whole = first + second + mindspore_value("odd", "String", "", "text");
  auto opened =
      open_checkpoint(memory_directory("ckpt", ListFiles{{"net-1_10.ckpt", list_bytes(whole)}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->format().name == "mindspore");
  CHECK((*opened)->tensor_count() == 2);
  CHECK(floats_of(**opened, "conv1.weight") == std::vector<float>{1, 2});
  CHECK(floats_of(**opened, "fc.weight") == std::vector<float>{1, 2});
  CHECK((*opened)->shape(*(*opened)->find("fc.weight")).size() == 2);
  REQUIRE((*opened)->opening_findings().size() == 1);
  CHECK((*opened)->opening_findings()[0].cause.find("odd in net-1_10.ckpt") != std::string::npos);
  auto steps =
      open_checkpoint(memory_directory("ckpt", ListFiles{{"net-1_10.ckpt", list_bytes(whole)},
                                                         {"net-2_10.ckpt", list_bytes(whole)}}));
  REQUIRE_MESSAGE(steps.has_value(), steps.error().message);
  CHECK((*steps)->find("conv1.weight").has_value());
  for (std::size_t length = 30; length < whole.size(); ++length) {
    auto cut = open_checkpoint(
        memory_directory("ckpt", ListFiles{{"net.ckpt", list_bytes(whole.substr(0, length))}}));
    // Nothing tells of arrays that are missing whole.
    const bool ends_between = length == first.size() || length == first.size() + second.size();
    CAPTURE(length);
    CHECK((!cut.has_value() || ends_between));
  }
}

TEST_CASE("mindspore: the first bytes of any file are checked within their bounds") {
  const std::string whole =
      mindspore_value("conv1.weight", "Float32", "\x08\x02", std::string(8, '\0'));
  for (std::size_t length = 1; length < whole.size(); ++length)
    (void)begins_as_mindspore(list_bytes(whole.substr(0, length)));
  CHECK(begins_as_mindspore(list_bytes(whole)));
  for (std::size_t length = 1; length < 12; ++length)
    CHECK_FALSE(begins_as_mindspore(list_bytes("\x0a" + std::string(length, '\x80'))));
}

TEST_CASE("mindspore: an array without elements does not hide the next one") {
  const std::string content("\0\0\x80\x3f\0\0\0\x40", 8);  // 1, 2
  const std::string file = mindspore_value("empty", "Float32", std::string("\x08\0", 2), "") +
                           mindspore_value("w", "Float32", "\x08\x02", content);
  auto opened =
      open_checkpoint(memory_directory("ckpt", ListFiles{{"net.ckpt", list_bytes(file)}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(floats_of(**opened, "w") == std::vector<float>{1, 2});
}
