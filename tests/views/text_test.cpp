#include "views/text.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

using namespace shw;

namespace {
// Every first byte of a character is ten pixels wide.
float ten_each(std::string_view text) {
  float width = 0;
  for (char byte : text) width += (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u ? 10.f : 0.f;
  return width;
}
}  // namespace

TEST_CASE("a name that fits is not cut") {
  CHECK(elide_middle("weight", 60, ten_each) == "weight");
}

TEST_CASE("a long name loses its middle and never half a character") {
  for (float width = 10; width < 400; width += 10) {
    std::string cut = elide_middle("model.lâyers.3.möe.experts.döwn_proj.wéight", width, ten_each);
    CHECK(ten_each(cut) <= width);
    for (std::size_t i = 0; i + 1 < cut.size(); ++i) {
      bool lead = (static_cast<unsigned char>(cut[i]) & 0xE0u) == 0xC0u;
      if (lead) CHECK((static_cast<unsigned char>(cut[i + 1]) & 0xC0u) == 0x80u);
    }
  }
  CHECK(elide_middle("abcdefghij", 50, ten_each) == "ab…ij");
  // No part of a number with separators stands for the whole.
  const std::string counts = "bytes 48,112,880 to 95,300,960 of 1,509,949,440 elements";
  for (float width = 30; width < 560; width += 10) {
    const std::string cut = elide_middle(counts, width, ten_each);
    CAPTURE(cut);
    const std::size_t at = cut.find("…");
    REQUIRE(at != cut.npos);
    for (const char* part : {",509,949,440", "509,949,440", "949,440", "440"})
      CHECK_FALSE(cut.substr(at + 3).starts_with(part));
    for (const char* part : {" 48,112", " 48,1", " 48", " 4"})
      CHECK_FALSE(cut.substr(0, at).ends_with(part));
  }
}

TEST_CASE("a path keeps its tail from a dot on") {
  CHECK(elide_path("model.layers.3.moe.gate_proj.weight", 170, ten_each) == "…gate_proj.weight");
  CHECK(elide_path("short", 170, ten_each) == "short");
  // "…weight" would not say of what.
  CHECK(elide_path("post_attention_layernorm.weight", 180, ten_each).starts_with("post_att"));
}

TEST_CASE("durations and shapes are said as people say them") {
  CHECK(duration_text(0.24) == "0.2 s");
  CHECK(duration_text(45) == "45 s");
  CHECK(duration_text(600) == "10 min");
  CHECK(duration_text(7800) == "2 h 10 min");
  CHECK(duration_text(1e300) == "years");
  CHECK(times_text(Extents{288, 8192, 640}) == "288×8192×640");
  CHECK(times_text(Extents{}) == "scalar");
}

TEST_CASE("two different names never become the same text") {
  std::mt19937 random(5);
  const char* parts[] = {"model", "layers", "decoder", "down_proj", "up_proj", "gate", "weight",
                         "bias",  "moe",    "experts", "0",         "1",       "11",   "101"};
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> names;
    for (int n = 0; n < 30; ++n) {
      std::string name = round % 2 ? "model.layers.experts" : "";
      for (unsigned p = 0; p < 2 + random() % 6; ++p)
        name += (name.empty() ? "" : ".") + std::string(parts[random() % std::size(parts)]);
      names.push_back(name);
    }
    std::vector<std::string_view> views(names.begin(), names.end());
    float width = 120.0f + static_cast<float>(random() % 12) * 10;
    auto texts = elide_apart(views, width, ten_each);
    std::map<std::string, std::string> said;
    for (std::size_t i = 0; i < names.size(); ++i) {
      CHECK(ten_each(texts[i]) <= width);
      auto [found, is_new] = said.emplace(texts[i], names[i]);
      if (!is_new) CHECK(found->second == names[i]);
    }
  }
  CHECK(elide_apart({"down_projection.weight", "up"}, 100, ten_each)[1] == "up");
}

TEST_CASE("a sentence that is too long loses its end") {
  CHECK(elide_end("Nothing is lost.", 400, ten_each) == "Nothing is lost.");
  CHECK(elide_end("Nothing is lost.", 100, ten_each) == "Nothing i…");
  CHECK(elide_end("möe", 20, ten_each) == "m…");
}

TEST_CASE("words of findings are shown without marks of code and without half-open ranges") {
  CHECK(desktop_text("run `shardwright check x` again") == "run \"shardwright check x\" again");
  CHECK(desktop_text("a.bin [12808, 14385)") == "a.bin bytes 12,808 to 14,384");
  CHECK(desktop_text("equals w rows [3, 7)") == "equals w rows 3 to 6");
  CHECK(desktop_text("one ` alone, [4, 8], [0:3, 1:2]") == "one ` alone, [4, 8], [0:3, 1:2]");
}
