#include "views/theme.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/eyes.h"

using namespace shw;
using test::Eye;
using test::kEyes;

namespace {

double apart(Rgba a, Rgba b, const Eye& eye) {
  auto srgb = [](Rgba colour) {
    return Srgb{static_cast<std::uint8_t>(colour), static_cast<std::uint8_t>(colour >> 8),
                static_cast<std::uint8_t>(colour >> 16)};
  };
  return test::apart(srgb(a), srgb(b), eye);
}

std::vector<Rgba> colours_of(MeshGrid grid, const TilePalette& palette) {
  std::vector<Rgba> colours;
  for (std::uint32_t rank = 0; rank < grid.rows * grid.columns; ++rank)
    colours.push_back(writer_colour(rank, grid, palette));
  return colours;
}

}  // namespace

TEST_CASE("every text token reaches 4.5 to 1 on what it is on in each theme") {
  for (verbs::UiTheme name : verbs::kUiThemes) {
    CAPTURE(verbs::name(name));
    const Theme& t = theme_of(name);
    for (Rgba back : {t.background, t.side, t.field, t.raised, t.selected, t.raised_hover})
      CHECK(contrast(t.text, back) >= 7);
    for (Rgba back : {t.background, t.side, t.field, t.selected}) {
      CHECK(contrast(t.quiet, back) >= 4.5);
      CHECK(contrast(t.bad, back) >= 4.5);
      CHECK(contrast(t.warn, back) >= 4.5);
      CHECK(contrast(t.ok, back) >= 4.5);
      CHECK(contrast(t.accent, back) >= 4.5);
      CHECK(contrast(t.unknown, back) >= 4.5);
    }
    for (Rgba chip : {t.ok, t.warn, t.bad, t.quiet}) CHECK(contrast(chip, t.raised) >= 4.5);
    for (Rgba back : {t.side, t.background, t.field}) CHECK(contrast(t.head, back) >= 4.5);
    CHECK(contrast(t.accent_text, t.accent) >= 4.5);
    CHECK(contrast(t.accent_text, mix(t.accent, t.text, 0.2f)) >= 4.5);  // under the mouse
    CHECK(contrast(t.bad_text, t.bad) >= 4.5);
    for (Rgba back : {t.bad_back, t.ok_back, t.warn_back, t.unknown_back}) {
      CHECK(contrast(t.text, back) >= 7);
      CHECK(contrast(mix(t.quiet, t.text, 0.35f), back) >= 4.5);
    }
  }
}

TEST_CASE("signs and borders that say something reach 3 to 1 in each theme") {
  for (verbs::UiTheme name : verbs::kUiThemes) {
    CAPTURE(verbs::name(name));
    const Theme& t = theme_of(name);
    for (Rgba back : {t.background, t.side, t.field}) {
      CHECK(contrast(t.control, back) >= 3);  // borders of fields and check boxes
      CHECK(contrast(t.frame, back) >= 3);    // focus and selection
      CHECK(contrast(t.nobody, back) >= 3);
    }
    CHECK(contrast(t.bad, t.bad_back) >= 3);  // the icon of the verdict on its bar
    CHECK(contrast(t.warn, t.warn_back) >= 3);
    CHECK(contrast(t.ok, t.ok_back) >= 3);
    CHECK(contrast(t.unknown, t.unknown_back) >= 3);
    CHECK(contrast(t.accent, t.tile_line) >= 3);  // a repaired border on its halo
    for (Rgba sign : {t.warn, t.ok})
      CHECK(contrast(readable_on(sign, t.dark_ink, t.light_ink), sign) >= 3);
  }
}

TEST_CASE("the theme of high contrast keeps 7 to 1 for every text") {
  const Theme& t = theme_of(verbs::UiTheme::kContrast);
  for (Rgba text : {t.text, t.quiet, t.head, t.accent, t.ok, t.bad, t.warn, t.unknown}) {
    for (Rgba back : {t.background, t.side, t.field}) CHECK(contrast(text, back) >= 7);
  }
  for (Rgba line : {t.line, t.strong_line, t.control}) CHECK(contrast(line, t.background) >= 3);
}

TEST_CASE("a label is readable on the colour of every writer in each theme") {
  for (verbs::UiTheme name : verbs::kUiThemes) {
    const Theme& t = theme_of(name);
    for (MeshGrid grid : {MeshGrid{2, 32}, MeshGrid{1, 8}, MeshGrid{16, 1}, MeshGrid{32, 32}}) {
      for (Rgba fill : colours_of(grid, t.tiles)) {
        CHECK(contrast(readable_on(fill, t.dark_ink, t.light_ink), fill) >= 4.5);
        CHECK(contrast(fill, t.background) >= 3);
      }
    }
  }
}

TEST_CASE("eight ranks are eight colours to every eye in each theme") {
  for (verbs::UiTheme name : verbs::kUiThemes) {
    CAPTURE(verbs::name(name));
    const TilePalette& palette = theme_of(name).tiles;
    for (const Eye* eye : kEyes) {
      CAPTURE(eye->name);
      auto ranks = colours_of({1, 8}, palette);
      double least = 1;
      for (std::size_t a = 0; a < ranks.size(); ++a) {
        for (std::size_t b = a + 1; b < ranks.size(); ++b)
          least = std::min(least, apart(ranks[a], ranks[b], *eye));
      }
      CHECK(least >= 0.02);  // in OKLab; from there letters are visible on their background
      // In two rows: neighbours next to, above and below.
      auto rows = colours_of({2, 8}, palette);
      for (std::size_t column = 0; column < 8; ++column) {
        CHECK(apart(rows[column], rows[column + 8], *eye) >= 0.05);
        if (column == 7) continue;
        CHECK(apart(rows[column], rows[column + 1], *eye) >= 0.016);
        CHECK(apart(rows[column + 8], rows[column + 9], *eye) >= 0.016);
      }
    }
  }
}

TEST_CASE(
    "the check of eyes finds the colours of before, two of which nobody without green tells") {
  std::vector<Rgba> before;
  for (int i = 0; i < 8; ++i)
    before.push_back(from_oklch(0.58f, 0.085f, 245.0f + 230.0f * static_cast<float>(i) / 7));
  double least = 1;
  for (std::size_t a = 0; a < before.size(); ++a) {
    for (std::size_t b = a + 1; b < before.size(); ++b)
      least = std::min(least, apart(before[a], before[b], test::kWithoutGreen));
  }
  CHECK(least < 0.01);
}

TEST_CASE("neighbours in the mesh have different colours, and a rank has one colour") {
  MeshGrid grid{2, 32};
  TilePalette palette;
  for (std::uint32_t rank = 0; rank + 1 < 64; ++rank) {
    CHECK(writer_colour(rank, grid, palette) != writer_colour(rank + 1, grid, palette));
    CHECK(writer_colour(rank, grid, palette) == writer_colour(rank, grid, palette));
  }
  CHECK(luminance(writer_colour(32, grid, palette)) > luminance(writer_colour(0, grid, palette)));
}

TEST_CASE("a theme that lacks a token, or has an unknown one, is refused") {
  CHECK_FALSE(parse_theme(""));
  CHECK_FALSE(parse_theme("background #101010\n"));
  CHECK_FALSE(parse_theme("no-such-token #101010\n"));
  CHECK_FALSE(parse_theme("background #10101\n"));
  CHECK_FALSE(parse_theme("tile_fall #101010\n"));
  CHECK_FALSE(parse_theme("tile_fall 2\n"));
  CHECK_FALSE(parse_theme("background 0.5\n"));
}
