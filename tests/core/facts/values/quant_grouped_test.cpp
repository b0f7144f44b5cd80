// GPTQ's weights in words of each size, packed here bit by bit, and zero points of both formats.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
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

constexpr std::size_t kInputs = 64, kOutputs = 32, kInGroup = 16, kGroups = kInputs / kInGroup;

struct GptqCase {
  unsigned bits = 4, word_bits = 32;
  bool has_whole_zeros = false;
  std::vector<std::uint32_t> zero_words = {};  // instead of packed zero points
  std::string more_config = {};
};

struct PackedBits {
  std::vector<bool> bits;
  void add(std::uint32_t code, unsigned count) {
    for (unsigned bit = 0; bit < count; ++bit) bits.push_back((code >> bit & 1) != 0);
  }
  // Byte `at` of the stream.
  char byte(std::size_t at) const {
    unsigned byte = 0;
    for (std::size_t bit = 0; bit < 8; ++bit)
      byte |= static_cast<unsigned>(bits[at * 8 + bit]) << bit;
    return static_cast<char>(byte);
  }
};

std::uint32_t gptq_code(std::size_t input, std::size_t output, unsigned bits) {
  return static_cast<std::uint32_t>(input * 7 + output * 5 + input * output) & ((1U << bits) - 1);
}
std::uint32_t gptq_zero(std::size_t group, std::size_t output, unsigned bits) {
  return static_cast<std::uint32_t>(group * 3 + output) % ((1U << bits) - 1) + 1;
}
float gptq_scale(std::size_t group, std::size_t output) {
  return 0.5F * static_cast<float>(group + 1) + static_cast<float>(output);
}

std::shared_ptr<const Checkpoint> opened_gptq(const GptqCase& made) {
  const std::size_t word_bytes = made.word_bits / 8;
  // Words of a column follow each other, a row of words apart.
  std::string weight(kInputs * made.bits / 8 * kOutputs, '\0'), zeros, scales;
  for (std::size_t output = 0; output < kOutputs; ++output) {
    PackedBits column;
    for (std::size_t input = 0; input < kInputs; ++input)
      column.add(gptq_code(input, output, made.bits), made.bits);
    for (std::size_t at = 0; at < kInputs * made.bits / 8; ++at)
      weight[(at / word_bytes * kOutputs + output) * word_bytes + at % word_bytes] =
          column.byte(at);
  }
  for (std::size_t group = 0; group < kGroups; ++group) {
    PackedBits row;
    for (std::size_t output = 0; output < kOutputs; ++output) {
      const std::uint32_t off = made.has_whole_zeros ? 0 : 1;
      row.add(gptq_zero(group, output, made.bits) - off, made.bits);
      const float scale = gptq_scale(group, output);
      scales.append(reinterpret_cast<const char*>(&scale), sizeof scale);
    }
    for (std::size_t at = 0; at < kOutputs * made.bits / 8; ++at) zeros += row.byte(at);
    if (made.zero_words.empty()) continue;
    zeros.resize(zeros.size() - kOutputs * made.bits / 8);
    zeros.append(reinterpret_cast<const char*>(made.zero_words.data()),
                 made.zero_words.size() * sizeof(std::uint32_t));
  }
  const std::string words = fmt::format("I{}", made.word_bits);
  json header;
  std::string data;
  const auto add = [&](const char* name, const std::string& dtype, std::size_t rows,
                       std::size_t columns, const std::string& bytes) {
    header[name] = {{"dtype", dtype},
                    {"shape", {rows, columns}},
                    {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    data += bytes;
  };
  const std::size_t row_words = kOutputs * made.bits / made.word_bits;
  add("a.qweight", words, kInputs * made.bits / made.word_bits, kOutputs, weight);
  add("a.qzeros", words, kGroups, row_words, zeros);
  add("a.scales", "F32", kGroups, kOutputs, scales);
  const std::string written = header.dump();
  const std::string config = fmt::format(
      R"({{"quantization_config": {{"quant_method": "gptq", "bits": {}, "group_size": {},
          "pack_dtype": "int{}", "checkpoint_format": "{}"{}}}}})",
      made.bits, kInGroup, made.word_bits, made.has_whole_zeros ? "gptq_v2" : "gptq",
      made.more_config);
  auto opened = open_checkpoint(memory_directory(
      "m", {{"model.safetensors", to_bytes(little(written.size(), 8) + written + data)},
            {"config.json", to_bytes(config)}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return *opened;
}

std::string gptq_causes(const Checkpoint& checkpoint) {
  CheckOptions options;
  options.depth = Depth::kHeaders;
  auto report = check(checkpoint, options, nullptr);
  REQUIRE(report.has_value());
  std::string causes;
  for (const Finding& finding : report->findings)
    if (finding.severity != Severity::kInfo) causes += finding.cause + "\n";
  return causes;
}

}  // namespace

TEST_CASE("gptq: codes of all bits and words read as their formula makes them") {
  for (const unsigned bits : {2U, 3U, 4U, 8U}) {
    for (const unsigned word_bits : {8U, 16U, 32U, 64U}) {
      if (bits == 3 && word_bits != 32) continue;
      for (const bool has_whole_zeros : {false, true}) {
        CAPTURE(bits);
        CAPTURE(word_bits);
        CAPTURE(has_whole_zeros);
        const auto stored = opened_gptq({bits, word_bits, has_whole_zeros});
        CHECK(gptq_causes(*stored) == "");
        auto made = dequantised(stored, nullptr);
        REQUIRE_MESSAGE(made.has_value(), made.error().message);
        auto read = read_tensor(**made, (*made)->find("a.weight").value());
        REQUIRE(read.has_value());
        REQUIRE(read->shape == Extents{kOutputs, kInputs});
        std::vector<float> numbers(kOutputs * kInputs);
        REQUIRE(read->bytes.size() == numbers.size() * sizeof(float));
        std::memcpy(numbers.data(), read->bytes.data(), read->bytes.size());
        bool is_equal = true;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          const std::size_t output = i / kInputs, input = i % kInputs, group = input / kInGroup;
          const auto code = static_cast<float>(gptq_code(input, output, bits));
          const auto zero = static_cast<float>(gptq_zero(group, output, bits));
          is_equal = is_equal && numbers[i] == (code - zero) * gptq_scale(group, output);
        }
        CHECK(is_equal);
      }
    }
  }
}

TEST_CASE("gptq: zero points of 3 bits as the first GPTQModel wrote them are named") {
  // All are 4; of the words 0x24924924, 0x92492492 and 0x49249249 were taken off.
  const GptqCase old{
      .bits = 3, .zero_words = {0, 0xB6DB6DB7, 0x49249249}, .more_config = R"(, "sym": true)"};
  const auto stored = opened_gptq(old);
  CHECK(gptq_causes(*stored).find("GPTQModel up to 6.0") != std::string::npos);
  auto made = dequantised(stored, nullptr);
  const bool is_decoded = made && (*made)->find("a.weight") &&
                          read_tensor(**made, *(*made)->find("a.weight")).has_value();
  CHECK_FALSE(is_decoded);
  // Less 1 each, as the format has it.
  const GptqCase right{.bits = 3,
                       .zero_words = {0xDB6DB6DB, 0xB6DB6DB6, 0x6DB6DB6D},
                       .more_config = R"(, "sym": true)"};
  CHECK(gptq_causes(*opened_gptq(right)) == "");
}

TEST_CASE("gptq: words of another size than the config says are reported") {
  const auto stored = opened_gptq({.word_bits = 16, .more_config = R"(, "pack_dtype": "int32")"});
  CHECK(gptq_causes(*stored) != "");
}
