// Makes text that a font can show.
#include "views/shown_text.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "make/snapshots.h"
#include "views/driver.h"

using namespace shw;

TEST_CASE("shown text: controls, broken UTF-8 and missing letters are escapes") {
  Driver driver(make::demo());
  driver.frame();
  const ImFont* font = ImGui::GetIO().Fonts->Fonts[0];
  std::string buffer;
  auto shown = [&](std::string_view text, bool keeps_lines = false) {
    return std::string(shown_text(font, text, buffer, keeps_lines));
  };
  (void)collect_missing_letters();
  CHECK(shown("model.layers.0") == "model.layers.0");
  CHECK(shown("a\nb\tc") == "a\\nb\\tc");
  CHECK(shown("a\nb", true) == "a\nb");
  CHECK(shown(std::string_view("\x1b[31m", 5)) == "\\x1b[31m");
  CHECK(shown("\xff") == "\\xff");
  CHECK(shown("\u202e") == "\\u202e");
  CHECK(shown("\u6a21") == "\\u6a21");
  CHECK(shown("\U0001F600") == "\\U0001f600");
  const auto missing = collect_missing_letters();
  CHECK(std::find(missing.begin(), missing.end(), ImWchar{0x6a21}) != missing.end());
  (void)shown("\u6a21");
  CHECK(collect_missing_letters().empty());  // reported once
}

TEST_CASE("shown text: an empty name is visible") {
  CHECK(shown_name("") == "(empty name)");
  CHECK(shown_name("w") == "w");
}
