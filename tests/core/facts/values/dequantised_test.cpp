// Quantised weights in the forms that libraries write (tests/data/quantised). The expected values
// are computed by the formula of each form; for MXFP4 by transformers' decoder, and for mxfp8 and
// mxfp4_packed and the other packed_* by compressed-tensors 0.20, for auto_round* and gptq_dynamic
// by AutoRound 0.16, for mlx_* by MLX 0.32, for nf4_in_bfloat16 by the blocks that bitsandbytes
// 0.50 wrote, and for torchao_int4 and torchao_mx by torchao 0.18, for
// gguf_nvfp4 by gguf 0.19, for gptq_3bit by AutoGPTQ 0.8, for gptq_planes by the codes that
// GPTQModel 7.7 packed, for hqq* by hqq 0.2.8, and for bitnet* by the layers of transformers 5.24.
#include "core/facts/values/dequantised.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/read_all.h"
#include "core/transform/target_state.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("dequantised: every form reads as its formula makes it") {
  for (const std::string name : {"fp8_block",
                                 "fp8_rows",
                                 "mxfp4",
                                 "gptq",
                                 "awq",
                                 "nf4",
                                 "int8",
                                 "nvfp4",
                                 "nvfp4_experts",
                                 "mlx",
                                 "packed",
                                 "mxfp8",
                                 "mxfp4_packed",
                                 "torchao_int4",
                                 "torchao_mx",
                                 "gguf_nvfp4",
                                 "packed_asymmetric",
                                 "packed_actorder",
                                 "auto_round_gptq",
                                 "auto_round",
                                 "auto_round_awq",
                                 "gptq_dynamic",
                                 "mlx_mixed",
                                 "mlx_3bit",
                                 "mlx_mxfp8",
                                 "mlx_nvfp4",
                                 "nf4_in_bfloat16",
                                 "gptq_3bit",
                                 "gptq_planes",
                                 "auto_round_bits",
                                 "auto_round_gptq_bits",
                                 "auto_round_awq_bits",
                                 "hqq",
                                 "hqq_bfloat16",
                                 "bitnet",
                                 "bitnet_bitlinear"}) {
    CAPTURE(name);
    const std::string folder = std::string(SHW_TEST_DATA) + "/quantised/" + name;
    auto stored = open_checkpoint(folder + "/ckpt");
    REQUIRE(stored.has_value());
    auto checkpoint = dequantised(*stored, nullptr);
    INFO((checkpoint ? std::string() : checkpoint.error().message));
    REQUIRE(checkpoint.has_value());
    auto truth = read_truth(folder + "/truth.safetensors");
    REQUIRE(truth.has_value());
    CHECK((*checkpoint)->tensor_count() == truth->size());
    CHECK((*checkpoint)->opening_findings().empty());
    check_elements(**checkpoint, *truth);
  }
}

TEST_CASE("dequantised: settings in a file of the quantiser read as those in config.json") {
  const std::vector<std::array<std::string, 3>> moved = {
      {"awq", "quant_config.json", R"({"w_bit": 4, "q_group_size": 8, "version": "GEMM"})"},
      {"gptq", "quantize_config.json", R"({"bits": 4, "group_size": 8})"}};
  for (const auto& [name, file, settings] : moved) {
    CAPTURE(name);
    const std::string folder = std::string(SHW_TEST_DATA) + "/quantised/" + name;
    auto source = open_file(folder + "/ckpt/model.safetensors", "model.safetensors");
    REQUIRE(source.has_value());
    auto weights = read_bytes(**source, 0, (*source)->size());
    REQUIRE(weights.has_value());
    auto stored = open_checkpoint(memory_directory("m", {{"model.safetensors", *weights},
                                                         {"config.json", to_bytes("{}")},
                                                         {file, to_bytes(settings)}}));
    REQUIRE(stored.has_value());
    auto checkpoint = dequantised(*stored, nullptr);
    REQUIRE(checkpoint.has_value());
    auto truth = read_truth(folder + "/truth.safetensors");
    REQUIRE(truth.has_value());
    check_elements(**checkpoint, *truth);
  }
}

TEST_CASE("dequantised: what decoding rounded counts as cast, and all else does not") {
  std::size_t rounded = 0;
  for (const std::string name : {"fp8_block", "mxfp4", "gptq", "nf4"}) {
    CAPTURE(name);
    auto stored = open_checkpoint(std::string(SHW_TEST_DATA) + "/quantised/" + name + "/ckpt");
    REQUIRE(stored.has_value());
    auto checkpoint = dequantised(*stored, nullptr);
    REQUIRE(checkpoint.has_value());
    const Checkpoint& c = **checkpoint;
    const TargetState all = target_state_of(*checkpoint);
    for (TensorId tensor : c.tensors()) {
      const bool was_stored = (*stored)->find(c.fqn(tensor)).has_value() &&
                              (*stored)->dtype(*(*stored)->find(c.fqn(tensor))) == c.dtype(tensor);
      auto target = target_tensor(all, 0, tensor);
      REQUIRE(target.has_value());
      CHECK(target->is_cast == (!was_stored && c.dtype(tensor) != Dtype::kFloat32));
      rounded += target->is_cast ? 1 : 0;
    }
  }
  CHECK(rounded > 0);
}

TEST_CASE("dequantised: a checkpoint without quantised weights is refused") {
  auto stored = open_checkpoint(std::string(SHW_TEST_DATA) + "/gguf/split/ckpt");
  REQUIRE(stored.has_value());
  auto checkpoint = dequantised(*stored, nullptr);
  REQUIRE_FALSE(checkpoint.has_value());
  CHECK(checkpoint.error().kind == ErrorKind::kUnsupported);
}

TEST_CASE("dequantised: bytes are FP8 where config.json says so, and stay where none does") {
  const std::string header =
      R"({"a.weight":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]},)"
      R"("a.weight_scale":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]}})";
  // 1, -1, 448 and the least number; scales 1 and 2.
  const std::string bytes("\x38\xB8\x7E\x01\x00\x00\x80\x3F\x00\x00\x00\x40", 12);
  const Bytes file = to_bytes(little(header.size(), 8) + header + bytes);
  for (const std::string method : {"fp8", "modelopt", "compressed-tensors", ""}) {
    CAPTURE(method);
    const Bytes config =
        to_bytes(R"({"quantization_config":{"quant_method":")" + method + R"("}})");
    auto stored = open_checkpoint(
        memory_directory("m", {{"model.safetensors", file}, {"config.json", config}}));
    REQUIRE(stored.has_value());
    auto checkpoint = dequantised(*stored, nullptr);
    REQUIRE(checkpoint.has_value() == !method.empty());
    if (!checkpoint) continue;
    auto read = read_tensor(**checkpoint, *(*checkpoint)->find("a.weight"));
    REQUIRE(read.has_value());
    float numbers[4] = {};
    REQUIRE(read->bytes.size() == sizeof numbers);
    std::memcpy(numbers, read->bytes.data(), sizeof numbers);
    CHECK(numbers[0] == 1.0f);
    CHECK(numbers[1] == -1.0f);
    CHECK(numbers[2] == 896.0f);
    CHECK(numbers[3] == 2.0f / 512);
  }
}

TEST_CASE("dequantised: the file of a quantiser is not copied") {
  const std::string header =
      R"({"a.weight":{"dtype":"F8_E4M3","shape":[2,2],"data_offsets":[0,4]},)"
      R"("a.weight_scale":{"dtype":"F32","shape":[],"data_offsets":[4,8]}})";
  const std::string bytes("\x38\xB8\x7E\x01\x00\x00\x80\x3F", 8);
  auto stored = open_checkpoint(memory_directory(
      "m", {{"model.safetensors", to_bytes(little(header.size(), 8) + header + bytes)},
            {"config.json", to_bytes("{}")},
            {"hf_quant_config.json", to_bytes(R"({"quantization": {"quant_algo": "FP8"}})")}}));
  REQUIRE(stored.has_value());
  auto checkpoint = dequantised(*stored, nullptr);
  REQUIRE(checkpoint.has_value());
  const Directory& folder = *(*checkpoint)->directory();
  CHECK(folder.stat("hf_quant_config.json").kind == EntryKind::kMissing);
  auto entries = folder.list(100);
  REQUIRE(entries.has_value());
  CHECK(std::ranges::find(*entries, "hf_quant_config.json", &Entry::path) == entries->end());
  CHECK(std::ranges::find(*entries, "config.json", &Entry::path) != entries->end());
}

TEST_CASE("dequantised: companions that do not fit leave the weight as it is stored") {
  auto file = [](const std::string& scale_shape, std::size_t scale_bytes) {
    const std::string header =
        R"({"a.weight":{"dtype":"F8_E4M3","shape":[4,6],"data_offsets":[0,24]},)"
        R"("b.weight":{"dtype":"F8_E4M3","shape":[4,6],"data_offsets":[24,48]},)"
        R"("b.weight_scale":{"dtype":"F32","shape":[],"data_offsets":[48,52]},)"
        R"("a.weight_scale":{"dtype":"F32","shape":)" +
        scale_shape + R"(,"data_offsets":[52,)" + std::to_string(52 + scale_bytes) + "]}}";
    return to_bytes(little(header.size(), 8) + header + std::string(52 + scale_bytes, '\1'));
  };
  for (const auto& [shape, bytes] : {std::pair<std::string, std::size_t>{"[3]", 12},
                                     {"[4,6,1]", 96},
                                     {"[0]", 0},
                                     {"[5,1]", 20}}) {
    CAPTURE(shape);
    auto stored =
        open_checkpoint(memory_directory("m", {{"model.safetensors", file(shape, bytes)}}));
    REQUIRE(stored.has_value());
    auto checkpoint = dequantised(*stored, nullptr);
    REQUIRE(checkpoint.has_value());
    CHECK((*checkpoint)->dtype(*(*checkpoint)->find("a.weight")) == Dtype::kFloat8E4m3fn);
    CHECK((*checkpoint)->dtype(*(*checkpoint)->find("b.weight")) == Dtype::kFloat32);
    CHECK((*checkpoint)->find("a.weight_scale").has_value());
    CHECK_FALSE((*checkpoint)->opening_findings().empty());
  }
}

namespace {

// `between`: what torchao writes between a module's name and the name of a packed tensor.
void must_decode_torchao(const std::string& between) {
  // Two rows with a scale and a zero point each, and a matrix of FP8 with one scale.
  std::string header =
      R"({"a._weight_qdata":{"dtype":"I8","shape":[2,2],"data_offsets":[0,4]},)"
      R"("a._weight_scale":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]},)"
      R"("a._weight_zero_point":{"dtype":"I8","shape":[2,1],"data_offsets":[12,14]},)"
      R"("b._weight_qdata":{"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[14,16]},)"
      R"("b._weight_scale":{"dtype":"F32","shape":[1,1],"data_offsets":[16,20]},)"
      R"("c._weight_qdata":{"dtype":"U8","shape":[1,2],"data_offsets":[20,22]},)"
      R"("c._weight_scale":{"dtype":"F32","shape":[1,1],"data_offsets":[22,26]}})";
  const std::string in_files = "._weight_";
  for (std::size_t at = 0; (at = header.find(in_files, at)) != header.npos; at += between.size())
    header.replace(at, in_files.size(), between);
  const float scales[] = {0.5f, 2.0f}, one[] = {4.0f};
  auto text_of = [](std::span<const float> numbers) {
    return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
  };
  const std::string data = std::string("\x01\xfe\x05\x06", 4) + text_of(scales) +
                           std::string("\x00\x01", 2) + std::string("\x38\xb8", 2) + text_of(one) +
                           "\x12\x34" + text_of(one);
  const Bytes file = to_bytes(little(header.size(), 8) + header + data);
  auto stored = open_checkpoint(memory_directory("m", {{"model.safetensors", file}}));
  REQUIRE(stored.has_value());
  auto checkpoint = dequantised(*stored, nullptr);
  REQUIRE(checkpoint.has_value());
  auto numbers_of = [&](const char* fqn) {
    auto values = read_tensor(**checkpoint, (*checkpoint)->find(fqn).value());
    REQUIRE(values.has_value());
    std::vector<float> numbers(values->bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), values->bytes.data(), values->bytes.size());
    return numbers;
  };
  CHECK(numbers_of("a.weight") == std::vector<float>{0.5f, -1.0f, 8.0f, 10.0f});
  CHECK(numbers_of("b.weight") == std::vector<float>{4.0f, -4.0f});
  // Two numbers per byte: the tensor is kept, and a finding reports it.
  CHECK((*checkpoint)->find("c" + between + "qdata").has_value());
  CHECK_FALSE((*checkpoint)->opening_findings().empty());
}

}  // namespace

TEST_CASE("dequantised: weights that torchao packs are plain again under their own names") {
  must_decode_torchao("._weight_");  // transformers, in safetensors
  must_decode_torchao(".weight.");   // a parameter that was saved with its class
}
