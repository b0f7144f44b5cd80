// HQQ's weights: packed here by the rule of hqq's BitPack, and as hqq itself wrote them
// (tests/data/quantised/hqq*).
#include "core/facts/values/quant_hqq.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/facts/values/dequantised.h"
#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/read_all.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;
using nlohmann::json;

namespace {

struct HqqPart {
  std::string dtype, bytes;
  std::vector<std::int64_t> shape;
};
using HqqParts = std::map<std::string, HqqPart>;

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

struct HqqCase {
  int bits = 4, axis = 1;
  std::int64_t rows = 8, columns = 12, group = 4;  // of the weight
};

struct MadeHqq {
  HqqParts parts;  // by what follows the module's name
  std::vector<float> numbers;
};

// Halves as scales and quarters as zero points, so that float32 holds every number.
MadeHqq made_hqq(const HqqCase& made) {
  const std::int64_t all = made.rows * made.columns, groups = all / made.group;
  const std::int64_t height = made.axis == 1 ? groups : made.group;
  const std::int64_t width = made.axis == 1 ? made.group : groups;
  std::vector<unsigned> codes;
  std::vector<float> scales, zeros, numbers;
  for (std::int64_t i = 0; i < groups; ++i) {
    scales.push_back(0.5F * static_cast<float>(i + 1));
    zeros.push_back(0.25F * static_cast<float>(i));
  }
  for (std::int64_t i = 0; i < all; ++i) {
    codes.push_back(static_cast<unsigned>(i * i + 3 * i) & ((1U << made.bits) - 1));
    const auto group = static_cast<std::size_t>(made.axis == 1 ? i / width : i % width);
    numbers.push_back((static_cast<float>(codes.back()) - zeros[group]) * scales[group]);
  }
  const std::int64_t each = made.bits == 3 ? 10 : 8 / made.bits;
  const std::int64_t packed = (height + each - 1) / each;
  std::vector<std::uint32_t> words(static_cast<std::size_t>(packed * width), 0);
  for (std::int64_t row = 0; row < height; ++row) {
    for (std::int64_t column = 0; column < width; ++column) {
      const std::int64_t part = row / packed, shift = (each - 1 - part) * made.bits;
      words[static_cast<std::size_t>(row % packed * width + column)] |=
          codes[static_cast<std::size_t>(row * width + column)] << shift;
    }
  }
  const std::vector<std::uint8_t> bytes(words.begin(), words.end());
  const std::string packing = made.bits == 3 ? "3bit_32" : fmt::format("{}bit_u8", made.bits);
  const std::vector<std::int64_t> of_scales =
      made.axis == 1 ? std::vector{groups, std::int64_t{1}} : std::vector{std::int64_t{1}, groups};
  const auto number = [](int value) { return HqqPart{"I32", bytes_of(std::vector{value}), {}}; };
  const auto truth = [](bool value) { return HqqPart{"U8", std::string(1, value ? 1 : 0), {}}; };
  const auto text = [](const std::string& value) {
    return HqqPart{"U8", value, {static_cast<std::int64_t>(value.size())}};
  };
  HqqParts parts = {{".W_q", made.bits == 3 ? HqqPart{"I32", bytes_of(words), {packed, width}}
                                            : HqqPart{"U8", bytes_of(bytes), {packed, width}}},
                    {".scale", {"F32", bytes_of(scales), of_scales}},
                    {".zero", {"F32", bytes_of(zeros), of_scales}},
                    {".shape", {"I64", bytes_of(std::vector{made.rows, made.columns}), {2}}},
                    {".nbits", number(made.bits)},
                    {".axis", number(made.axis)},
                    {".group_size", number(static_cast<int>(made.group))},
                    {".packing", text(packing)},
                    {".view_as_float", truth(false)},
                    {".compute_dtype", text("torch.float32")}};
  return {std::move(parts), std::move(numbers)};
}

std::shared_ptr<const Checkpoint> opened_hqq(const HqqParts& parts, const std::string& config) {
  json header;
  std::string data;
  for (const auto& [name, part] : parts) {
    header[name] = {{"dtype", part.dtype},
                    {"shape", part.shape},
                    {"data_offsets", {data.size(), data.size() + part.bytes.size()}}};
    data += part.bytes;
  }
  const std::string written = header.dump();
  auto opened = open_checkpoint(memory_directory(
      "m", {{"model.safetensors", to_bytes(little(written.size(), 8) + written + data)},
            {"config.json", to_bytes(config)}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return *opened;
}

const std::string kHqqConfig = R"({"quantization_config": {"quant_method": "hqq"}})";

// Four modules, of which the last one is changed.
HqqParts four_hqq(const MadeHqq& made) {
  HqqParts parts;
  for (int i = 0; i < 4; ++i)
    for (const auto& [ending, part] : made.parts)
      parts[fmt::format("model.layers.{}.up_proj{}", i, ending)] = part;
  return parts;
}

std::vector<Finding> hqq_findings(const HqqParts& parts, const std::string& config = kHqqConfig) {
  CheckOptions options;
  options.depth = Depth::kHeaders;
  auto report = check(*opened_hqq(parts, config), options, nullptr);
  REQUIRE(report.has_value());
  std::vector<Finding> found;
  for (const Finding& finding : report->findings)
    if (finding.severity != Severity::kInfo) found.push_back(finding);
  return found;
}

}  // namespace

TEST_CASE("hqq: codes of all packings and both axes are decoded") {
  for (const int bits : {1, 2, 3, 4, 8}) {
    for (const int axis : {0, 1}) {
      CAPTURE(bits);
      CAPTURE(axis);
      const MadeHqq made =
          made_hqq({.bits = bits, .axis = axis, .rows = 16, .columns = 8, .group = 8});
      HqqParts parts;
      for (const auto& [ending, part] : made.parts) parts["a" + ending] = part;
      auto checkpoint = dequantised(opened_hqq(parts, kHqqConfig), nullptr);
      REQUIRE_MESSAGE(checkpoint.has_value(), checkpoint.error().message);
      CHECK((*checkpoint)->tensor_count() == 1);
      auto read = read_tensor(**checkpoint, (*checkpoint)->find("a.weight").value());
      REQUIRE(read.has_value());
      CHECK(read->shape == Extents{16, 8});
      std::vector<float> numbers(read->bytes.size() / sizeof(float));
      std::memcpy(numbers.data(), read->bytes.data(), read->bytes.size());
      CHECK(numbers == made.numbers);
    }
  }
}

TEST_CASE("hqq: qmodel.pt, whose settings are plain values, reads as the same weights") {
  const std::string folder = std::string(SHW_TEST_DATA) + "/quantised/hqq";
  auto stored = open_checkpoint(folder + "/qmodel.pt");
  REQUIRE_MESSAGE(stored.has_value(), stored.error().message);
  auto checkpoint = dequantised(*stored, nullptr);
  REQUIRE_MESSAGE(checkpoint.has_value(), checkpoint.error().message);
  auto truth = read_truth(folder + "/truth.safetensors");
  REQUIRE(truth.has_value());
  CHECK((*checkpoint)->tensor_count() == truth->size());
  CHECK((*checkpoint)->opening_findings().empty());
  check_elements(**checkpoint, *truth);
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(**stored, options, nullptr);
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings) {
    CAPTURE(finding.cause);
    CHECK(finding.severity == Severity::kInfo);
  }
}

TEST_CASE("hqq: whole weights raise nothing, and each part that one lacks is reported") {
  const MadeHqq made = made_hqq({});
  CHECK(hqq_findings(four_hqq(made)).empty());
  CHECK(hqq_findings(four_hqq(made), "{}").empty());
  for (const auto& [ending, part] : made.parts) {
    CAPTURE(ending);
    HqqParts parts = four_hqq(made);
    parts.erase("model.layers.2.up_proj" + ending);
    const auto found = hqq_findings(parts);
    REQUIRE_FALSE(found.empty());
    bool names_module = false;
    for (const Finding& finding : found)
      for (const std::string& subject : finding.subjects)
        names_module = names_module || subject.starts_with("model.layers.2.up_proj");
    CHECK(names_module);
  }
}

TEST_CASE("hqq: parts that contradict each other or the config are reported and not decoded") {
  const MadeHqq made = made_hqq({}), other = made_hqq({.bits = 2}),
                other_axis = made_hqq({.axis = 0}), other_group = made_hqq({.group = 8}),
                other_shape = made_hqq({.rows = 4});
  const std::vector<std::pair<std::string, HqqPart>> changes = {
      {".nbits", other.parts.at(".nbits")},
      {".packing", other.parts.at(".packing")},
      {".W_q", other.parts.at(".W_q")},
      {".axis", other_axis.parts.at(".axis")},
      {".scale", other_axis.parts.at(".scale")},
      {".zero", other_group.parts.at(".zero")},
      {".group_size", other_group.parts.at(".group_size")},
      {".shape", other_shape.parts.at(".shape")},
      {".shape", {"I64", std::string(16, '\xFF'), {2}}},
      {".view_as_float", {"U8", "\1", {}}}};
  for (const auto& [ending, part] : changes) {
    CAPTURE(ending);
    HqqParts parts = four_hqq(made);
    parts["model.layers.2.up_proj" + ending] = part;
    CHECK_FALSE(hqq_findings(parts).empty());
    auto checkpoint = dequantised(opened_hqq(parts, kHqqConfig), nullptr);
    REQUIRE(checkpoint.has_value());
    CHECK_FALSE((*checkpoint)->find("model.layers.2.up_proj.weight").has_value());
    CHECK((*checkpoint)->find("model.layers.1.up_proj.weight").has_value());
  }
  const auto config = [](int bits, int group) {
    return fmt::format(
        R"({{"quantization_config": {{"quant_method": "hqq", "quant_config":
            {{"weight_quant_params": {{"nbits": {}, "group_size": {}, "axis": 1}}}}}}}})",
        bits, group);
  };
  CHECK(hqq_findings(four_hqq(made), config(4, 4)).empty());
  CHECK_FALSE(hqq_findings(four_hqq(made), config(8, 4)).empty());
  CHECK_FALSE(hqq_findings(four_hqq(made), config(4, 64)).empty());
}

TEST_CASE("hqq: a projection of queries that is named W_q is no packed weight") {
  HqqParts parts;
  for (int i = 0; i < 4; ++i)
    for (const char* name : {"W_q", "W_k", "W_v"})
      parts[fmt::format("layers.{}.attention.{}", i, name)] = {
          "F32", bytes_of(std::vector<float>{0.5F, 1.5F, -0.25F, 2.0F}), {2, 2}};
  CHECK(hqq_findings(parts, "{}").empty());
}
