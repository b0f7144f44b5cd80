// FP4 and FP8 with powers of two as scales, under the names of several programs. The reference is
// transformers' Fp8Dequantize: code from a table, low half first, times 2^(exponent - 127).
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/facts/values/dequantised.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/read_all.h"

using namespace shw;
using namespace shw::test;

namespace {

struct Part {
  std::string name, dtype, shape, bytes;
};
std::shared_ptr<const Checkpoint> decoded(const std::vector<Part>& parts,
                                          const std::string& config) {
  std::string header, data;
  for (const Part& part : parts) {
    header += (header.empty() ? "{\"" : ",\"") + part.name + R"(":{"dtype":")" + part.dtype +
              R"(","shape":)" + part.shape + R"(,"data_offsets":[)" + std::to_string(data.size()) +
              "," + std::to_string(data.size() + part.bytes.size()) + "]}";
    data += part.bytes;
  }
  header += "}";
  auto stored = open_checkpoint(memory_directory(
      "m", {{"model.safetensors", to_bytes(little(header.size(), 8) + header + data)},
            {"config.json", to_bytes(config)}}));
  REQUIRE(stored.has_value());
  auto made = dequantised(*stored, nullptr);
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
  return *made;
}

std::vector<float> numbers_of(const Checkpoint& checkpoint, const std::string& fqn) {
  const auto tensor = checkpoint.find(fqn);
  REQUIRE(tensor.has_value());
  auto values = read_tensor(checkpoint, *tensor);
  REQUIRE_MESSAGE(values.has_value(), values.error().message);
  std::vector<float> numbers(values->bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), values->bytes.data(), values->bytes.size());
  return numbers;
}

// 64 numbers a row: 1.0 and -6.0 by turns, of which the second 32 are four times as much.
const std::string kRow = std::string(32, '\xf2');
const std::string kExponents = std::string("\x7f\x81", 2);
std::vector<float> row() {
  std::vector<float> numbers;
  for (int i = 0; i < 64; ++i) numbers.push_back((i % 2 == 0 ? 1.0f : -6.0f) * (i < 32 ? 1 : 4));
  return numbers;
}

}  // namespace

TEST_CASE("quant_mx: rows of FP4 decode under the names of every program") {
  struct Case {
    std::string weight, dtype, shape, scale, scale_dtype, config;
  };
  const std::string fp8 = R"({"quantization_config": {"quant_method": "fp8",
                              "weight_block_size": [128, 128]}})";
  for (const Case& one :
       std::vector<Case>{{"a.weight_packed", "U8", "[1,32]", "a.weight_scale", "U8",
                          R"({"quantization_config": {"quant_method": "compressed-tensors"}})"},
                         {"a.weight", "U8", "[1,32]", "a.weight_scale", "U8",
                          R"({"quantization_config": {"quant_method": "quark"}})"},
                         {"a.weight", "U32", "[1,8]", "a.scales", "U8",
                          R"({"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}})"},
                         {"a.weight", "I8", "[1,32]", "a.weight_scale_inv", "F8_E8M0", fp8},
                         {"a.weight", "I8", "[1,32]", "a.scale", "F8_E8M0", fp8}}) {
    CAPTURE(one.weight + one.scale + one.dtype);
    const auto made = decoded({{one.weight, one.dtype, one.shape, kRow},
                               {one.scale, one.scale_dtype, "[1,2]", kExponents}},
                              one.config);
    CHECK(made->tensor_count() == 1);
    CHECK(numbers_of(*made, "a.weight") == row());
  }
}

TEST_CASE("quant_mx: stacked experts of FP4 and FP8 decode expert by expert") {
  const std::string config = R"({"quantization_config": {"quant_method": "fp8"}})";
  const auto fp4 =
      decoded({{"experts.up_proj", "I8", "[2,1,32]", kRow + kRow},
               {"experts.up_proj_scale_inv", "F8_E8M0", "[2,1,2]", kExponents + kExponents}},
              config);
  std::vector<float> expected = row();
  for (float one : row()) expected.push_back(one);
  CHECK(numbers_of(*fp4, "experts.up_proj") == expected);
  // 1.0 in float8, with the exponents 1 and 2 of two experts.
  const auto fp8 = decoded({{"experts.up_proj", "F8_E4M3", "[2,1,2]", std::string(4, '\x38')},
                            {"experts.up_proj_scale_inv", "F8_E8M0", "[2,1,1]", "\x80\x81"}},
                           config);
  CHECK(numbers_of(*fp8, "experts.up_proj") == std::vector<float>{2, 2, 4, 4});
}

TEST_CASE("quant_mx: a scale of bytes next to FP8 is exponents, and no factor") {
  const auto made = decoded({{"a.weight", "F8_E4M3", "[1,32]", std::string(32, '\x38')},
                             {"a.weight_scale", "U8", "[1,1]", "\x80"}},
                            "{}");
  CHECK(numbers_of(*made, "a.weight") == std::vector<float>(32, 2.0f));
}

TEST_CASE("quant_mx: int8 with factors next to it stays one number to a byte") {
  const std::string two("\x00\x00\x00\x40", 4);
  const auto made = decoded({{"a.weight", "I8", "[1,2]", std::string("\x03\xff", 2)},
                             {"a.weight_scale", "F32", "[1,1]", two}},
                            "{}");
  CHECK(numbers_of(*made, "a.weight") == std::vector<float>{6, -2});
}

TEST_CASE("quant_mx: exponents that do not fit the rows leave the weight as it is") {
  for (const auto& [shape, bytes] :
       {std::pair<std::string, std::size_t>{"[1,3]", 3}, {"[2,1]", 2}, {"[2]", 2}, {"[1,0]", 0}}) {
    CAPTURE(shape);
    const auto made = decoded({{"a.weight", "I8", "[1,32]", kRow},
                               {"a.weight_scale_inv", "F8_E8M0", shape, std::string(bytes, '\x7f')},
                               {"b.weight", "F8_E4M3", "[1,1]", "\x38"},
                               {"b.weight_scale_inv", "U8", "[1,1]", "\x7f"}},
                              R"({"quantization_config": {"quant_method": "fp8"}})");
    CHECK(made->find("a.weight_scale_inv").has_value());
    CHECK_FALSE(made->opening_findings().empty());
  }
}
