// GGUF files that gguf-py 0.19 wrote (tests/data/gguf, from random blocks; the expected values are
// from its own decoder), intact and with wrong bytes.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/data_findings.h"
#include "core/fixtures.h"
#include "core/formats/gguf/gguf_files.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/table.h"
#include "core/read_all.h"
#include "core/verbs/values/quantised_parts.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kGgufData = std::string(SHW_TEST_DATA) + "/gguf/";

OpenedCheckpoint open_gguf_bytes(Bytes bytes) {
  return open_checkpoint(memory_directory("memory", {{"m.gguf", std::move(bytes)}}));
}

Bytes gguf_bytes(const std::string& path) {
  return whole_file(kGgufData + path);
}

void check_truth(const std::string& name) {
  auto opened = open_checkpoint(kGgufData + name + "/ckpt");
  REQUIRE(opened.has_value());
  auto truth = read_truth(kGgufData + name + "/truth.safetensors");
  REQUIRE(truth.has_value());
  CHECK((*opened)->format().name == "gguf");
  CHECK((*opened)->tensor_count() == truth->size());
  check_elements(**opened, *truth);
}

// The error or the finding for a damaged file.
std::string words_about(Bytes bytes) {
  auto opened = open_gguf_bytes(std::move(bytes));
  if (!opened) return opened.error().message;
  std::string words;
  for (const Finding& finding : findings_above_info(**opened)) words += finding.cause + "\n";
  return words;
}

bool says(const std::string& words, std::string_view part) {
  return words.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("gguf: plain elements and blocks of every kind read as gguf-py decodes them") {
  check_truth("kinds");
  auto opened = open_checkpoint(kGgufData + "kinds/ckpt");
  CHECK(findings_above_info(**opened).empty());
  auto tensor = (*opened)->find("blocks.Q4_K");
  REQUIRE(tensor.has_value());
  CHECK((*opened)->codec((*opened)->chunks(*tensor)[0]).name == "GGUF Q4_K");
  const std::vector<std::string> said = noted_additions(**opened);
  CHECK(std::find(said.begin(), said.end(), "tokenizer.ggml.tokens of the GGUF header") !=
        said.end());
}

// Written by llama-cpp-python 0.3.36; the expected values are from its ggml-quants.c.
TEST_CASE("gguf: blocks of NVFP4, Q1_0 and Q2_0 read as ggml decodes them") {
  check_truth("low_bits");
  auto opened = open_checkpoint(kGgufData + "low_bits/ckpt");
  CHECK(findings_above_info(**opened).empty());
  for (const std::string type : {"NVFP4", "Q1_0", "Q2_0"}) {
    auto tensor = (*opened)->find("blocks." + type);
    REQUIRE(tensor.has_value());
    CHECK((*opened)->codec((*opened)->chunks(*tensor)[0]).name == "GGUF " + type);
  }
}

// Made by gguf-py 0.19 of random codes: one number per weight, per expert, and none.
TEST_CASE("gguf: an NVFP4 weight and the number next to it are one quantised weight") {
  auto opened = open_checkpoint(std::string(SHW_TEST_DATA) + "/quantised/gguf_nvfp4/ckpt");
  REQUIRE(opened.has_value());
  CHECK(findings_above_info(**opened).empty());
  std::string found;
  for (const QuantisedWeight& weight : verbs::quantised_weights(**opened))
    found += weight.scheme + " " + weight.name + " " + std::to_string(weight.tensors.size()) + "\n";
  CHECK(found == "NVFP4 blk.0.ffn_up 2\nNVFP4 blk.0.ffn_up_exps 2\n");
}

// Made by gguf-py 0.19 of random codes.
TEST_CASE("gguf: blocks of TQ1_0 and TQ2_0 read as gguf-py decodes them") {
  check_truth("ternary");
}

// Made by gguf-py 0.19 of random bytes.
TEST_CASE("gguf: blocks of IQ1, IQ2 and IQ3 read as gguf-py decodes them") {
  check_truth("grids");
  auto opened = open_checkpoint(kGgufData + "grids/ckpt");
  CHECK(findings_above_info(**opened).empty());
}

TEST_CASE("gguf: a few elements in the middle of blocks read as they do in the whole") {
  auto opened = open_checkpoint(kGgufData + "kinds/ckpt");
  REQUIRE(opened.has_value());
  auto tensor = (*opened)->find("blocks.Q6_K");
  REQUIRE(tensor.has_value());
  auto first = read_first_elements(**opened, *tensor, 300);
  auto whole = read_tensor(**opened, *tensor);
  REQUIRE((first.has_value() && whole.has_value()));
  CHECK(same_bytes(first->bytes, BytesView(whole->bytes).first(first->bytes.size())));
}

TEST_CASE("gguf: the files of a split model are one checkpoint") {
  check_truth("split");
  auto opened = open_checkpoint(kGgufData + "split/ckpt");
  CHECK(findings_above_info(**opened).empty());
  // Opened by the name of its first part, it is only that part, and a finding reports that.
  auto part = open_checkpoint(kGgufData + "split/ckpt/m-00001-of-00003.gguf");
  REQUIRE(part.has_value());
  CHECK((*part)->tensor_count() == 2);
  REQUIRE((*part)->opening_findings().size() == 1);
  CHECK((*part)->opening_findings()[0].severity == Severity::kInfo);
}

TEST_CASE("gguf: a part of a split model that is missing is named") {
  auto opened = open_checkpoint(memory_directory(
      "memory", {{"m-00001-of-00003.gguf", gguf_bytes("split/ckpt/m-00001-of-00003.gguf")},
                 {"m-00003-of-00003.gguf", gguf_bytes("split/ckpt/m-00003-of-00003.gguf")}}));
  REQUIRE(opened.has_value());
  bool is_named = false;
  for (const Finding& finding : findings_above_info(**opened))
    is_named = is_named || says(finding.cause, "m-00002-of-00003.gguf");
  CHECK(is_named);
}

TEST_CASE("gguf: offsets that llama.cpp refuses are reported") {
  CHECK(words_about(gguf_file({{"a", {8}, 0, 0}, {"b", {8}, 0, 32}}, 64)).empty());
  CHECK(says(words_about(gguf_file({{"a", {8}, 0, 0}, {"b", {8}, 0, 36}}, 68)), "not aligned"));
  CHECK(says(words_about(gguf_file({{"a", {16}, 0, 0}, {"b", {8}, 0, 32}}, 64)),
             "inside another tensor"));
  CHECK(says(words_about(gguf_file({{"a", {8}, 0, 0}, {"b", {8}, 0, 64}}, 96)), "after a gap"));
  CHECK(says(words_about(gguf_file({{"a", {8}, 0, 0}, {"b", {8}, 0, 32}}, 40)), "m.gguf"));
  CHECK(says(words_about(gguf_file({{"a", {8}, 0, 0}, {"a", {8}, 0, 32}}, 64)), "and again in"));
  CHECK(says(words_about(gguf_file({{"a", {33}, 2, 0}}, 64)), "blocks of 32"));
  CHECK(says(words_about(gguf_file({{"a", {8}, 0, 0}}, 32, {gguf_number("general.alignment", 3)})),
             "power of two"));
}

TEST_CASE("gguf: counts and lengths that were made up are refused") {
  const std::uint64_t huge = ~std::uint64_t{0};
  CHECK_FALSE(open_gguf_bytes(to_bytes("GGUF" + little(3, 4) + little(huge, 8) + little(0, 8))));
  CHECK_FALSE(open_gguf_bytes(to_bytes("GGUF" + little(3, 4) + little(0, 8) + little(huge, 8))));
  CHECK_FALSE(open_gguf_bytes(
      to_bytes("GGUF" + little(3, 4) + little(1, 8) + little(0, 8) + little(huge, 8))));
  CHECK_FALSE(open_gguf_bytes(to_bytes("GGUF" + little(0x03000000, 4) + little(0, 16))));
  // An array of arrays of arrays.
  std::string nested = gguf_text("k") + little(9, 4);
  for (int i = 0; i < 1000; ++i) nested += little(9, 4) + little(1, 8);
  CHECK_FALSE(
      open_gguf_bytes(to_bytes("GGUF" + little(3, 4) + little(0, 8) + little(1, 8) + nested)));
  check_is_answered(open_gguf_bytes(gguf_file({{"a", {std::uint64_t{1} << 62, 4, 4}, 0, 0}}, 32)));
  check_is_answered(open_gguf_bytes(gguf_file({{"a", {0, 7}, 0, 0}, {"b", {}, 0, 0}}, 32)));
  check_is_answered(open_gguf_bytes(gguf_file({{"a", {8}, 0, huge - 64}}, 32)));
}

TEST_CASE("gguf: two models in a folder are not one, and a projector is read with its model") {
  const Bytes model = gguf_file({{"a", {8}, 0, 0}}, 32);
  auto two =
      open_checkpoint(memory_directory("memory", {{"m-Q4.gguf", model}, {"m-Q8.gguf", model}}));
  REQUIRE_FALSE(two);
  CHECK(says(two.error().advice, "path of one of them"));
  const std::string type = gguf_text("general.type") + little(8, 4) + gguf_text("mmproj");
  auto with = open_checkpoint(memory_directory(
      "memory", {{"m.gguf", model}, {"mmproj.gguf", gguf_file({{"v", {8}, 0, 0}}, 32, {type})}}));
  REQUIRE(with.has_value());
  CHECK((*with)->tensor_count() == 2);
  CHECK(findings_above_info(**with).empty());
}

TEST_CASE("gguf: of several quantisations of one model the one of the most bytes is opened") {
  const auto quantisation = [](const std::string& tensor, std::uint32_t width) {
    const std::string architecture =
        gguf_text("general.architecture") + little(8, 4) + gguf_text("llama");
    return gguf_file({{tensor, {8}, 0, 0}}, tensor == "large" ? 64 : 32,
                     {architecture, gguf_number("llama.block_count", 1),
                      gguf_number("llama.embedding_length", width)});
  };
  auto opened =
      open_checkpoint(memory_directory("memory", {{"m-Q4.gguf", quantisation("small", 8)},
                                                  {"m-Q8.gguf", quantisation("large", 8)}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->find("large").has_value());
  REQUIRE_FALSE((*opened)->opening_findings().empty());
  CHECK((*opened)->opening_findings().back().subjects == std::vector<std::string>{"m-Q4.gguf"});
  CHECK_FALSE(open_checkpoint(memory_directory(
      "memory", {{"a.gguf", quantisation("small", 8)}, {"b.gguf", quantisation("large", 16)}})));
}

TEST_CASE("gguf: every byte of a header wrong and every length of a file are answered") {
  const Bytes whole = gguf_bytes("kinds/ckpt/kinds.gguf");
  const std::size_t header = whole.size() < 2048 ? whole.size() : 2048;
  for (std::size_t at = 0; at < header; ++at) {
    for (unsigned change : {0x01u, 0xFFu}) {
      Bytes bent = whole;
      bent[at] ^= static_cast<std::byte>(change);
      check_is_answered(open_gguf_bytes(std::move(bent)));
    }
  }
  for (std::size_t length = 0; length < header; length += 7)
    check_is_answered(
        open_gguf_bytes(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))));
}

namespace {

using NamedExtents = std::vector<std::pair<std::string, std::vector<std::uint64_t>>>;

// Two blocks of a model with 8 elements per token and 4 heads of 2, in groups of 2.
NamedExtents small_gguf_model() {
  NamedExtents tensors{{"token_embd.weight", {8, 12}}, {"output_norm.weight", {8}}};
  for (int block = 0; block < 2; ++block) {
    const std::string before = "blk." + std::to_string(block) + ".";
    tensors.push_back({before + "attn_norm.weight", {8}});
    tensors.push_back({before + "attn_k.weight", {8, 4}});
    tensors.push_back({before + "ffn_up.weight", {8, 16}});
  }
  return tensors;
}

std::string said_of_keys(const NamedExtents& tensors, std::uint32_t blocks = 2,
                         std::uint32_t width = 8, std::uint32_t groups = 2,
                         const std::vector<std::string>& more = {}) {
  std::vector<GgufMade> made;
  std::uint64_t offset = 0;
  for (const auto& [name, extents] : tensors) {
    made.push_back({name, extents, 0, offset});
    std::uint64_t bytes = 4;
    for (std::uint64_t extent : extents) bytes *= extent;
    offset += (bytes + 31) / 32 * 32;
  }
  const std::string architecture =
      gguf_text("general.architecture") + little(8, 4) + gguf_text("llama");
  std::vector<std::string> pairs{architecture, gguf_number("llama.block_count", blocks),
                                 gguf_number("llama.embedding_length", width),
                                 gguf_number("llama.attention.head_count", 4),
                                 gguf_number("llama.attention.head_count_kv", groups)};
  pairs.insert(pairs.end(), more.begin(), more.end());
  auto opened = open_gguf_bytes(gguf_file(made, offset, pairs));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  auto report = check(**opened, {});
  REQUIRE(report.has_value());
  std::string said;
  for (const Finding& finding : report->findings) {
    if (finding.rule == "gguf-keys") said += finding.cause;
  }
  return said;
}

}  // namespace

TEST_CASE("gguf keys: what the header announces and the file lacks is reported") {
  const NamedExtents whole = small_gguf_model();
  CHECK(said_of_keys(whole).empty());
  CHECK(said_of_keys(whole, 3).find("missing tensor 'blk.2.attn_norm.weight'") !=
        std::string::npos);
  CHECK(said_of_keys(whole, 1).find("refuses") != std::string::npos);
  CHECK(said_of_keys(whole, 2, 16).find("embedding_length says 16") != std::string::npos);
  CHECK(said_of_keys(whole, 2, 8, 4).find("head_count_kv says 4") != std::string::npos);
  NamedExtents less = whole;
  std::erase_if(less, [](const auto& one) { return one.first == "blk.1.ffn_up.weight"; });
  CHECK(said_of_keys(less).find("blk.1.ffn_up.weight is missing") != std::string::npos);
  NamedExtents unnormed = whole;
  std::erase_if(unnormed, [](const auto& one) { return one.first == "output_norm.weight"; });
  CHECK(said_of_keys(unnormed).find("output_norm.weight, the norm after") != std::string::npos);
  // Only weights in NVFP4 have a scale next to them.
  NamedExtents scaled = whole;
  scaled.push_back({"blk.0.ffn_up.scale", {1}});
  scaled.push_back({"blk.0.ffn_up.input_scale", {1}});
  CHECK(said_of_keys(scaled).empty());
  std::erase_if(less, [](const auto& one) { return one.first == "token_embd.weight"; });
  CHECK(said_of_keys(less).find("token_embd.weight, the token embedding") != std::string::npos);
  // Blocks of two kinds, with different names.
  NamedExtents hybrid = whole;
  for (auto& [name, extents] : hybrid) {
    if (name == "blk.1.attn_k.weight") name = "blk.1.ssm_in.weight";
  }
  CHECK(said_of_keys(hybrid).empty());
}

TEST_CASE("gguf keys: widths, experts and tokens that differ from the header are reported") {
  const NamedExtents whole = small_gguf_model();
  const auto tokens = [](std::size_t count) {
    std::string list =
        gguf_text("tokenizer.ggml.tokens") + little(9, 4) + little(8, 4) + little(count, 8);
    for (std::size_t i = 0; i < count; ++i) list += gguf_text("t");
    return list;
  };
  CHECK(said_of_keys(whole, 2, 8, 2, {tokens(12)}).empty());
  CHECK(says(said_of_keys(whole, 2, 8, 2, {tokens(13)}), "lists 13 tokens"));
  const auto width = [](std::uint32_t said) {
    return std::vector<std::string>{gguf_number("llama.feed_forward_length", said)};
  };
  CHECK(said_of_keys(whole, 2, 8, 2, width(16)).empty());
  CHECK(said_of_keys(whole, 2, 8, 2, width(8)).empty());  // gate and up in one tensor
  CHECK(says(said_of_keys(whole, 2, 8, 2, width(32)), "feed_forward_length says 32"));
  NamedExtents experts = whole;
  for (int block = 0; block < 2; ++block)
    experts.push_back({"blk." + std::to_string(block) + ".ffn_up_exps.weight", {8, 4, 3}});
  CHECK(said_of_keys(experts, 2, 8, 2, {gguf_number("llama.expert_count", 3)}).empty());
  CHECK(says(said_of_keys(experts, 2, 8, 2, {gguf_number("llama.expert_count", 4)}),
             "expert_count says 4"));
}
