#include "views/text.h"

#include <doctest/doctest.h>

using namespace shw;

namespace {
// Every byte that begins a character is ten pixels wide.
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
}

TEST_CASE("a path keeps its tail from a dot on") {
  CHECK(elide_path("model.layers.3.moe.gate_proj.weight", 170, ten_each) == "…gate_proj.weight");
  CHECK(elide_path("short", 170, ten_each) == "short");
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
