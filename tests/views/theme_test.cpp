#include "views/theme.h"

#include <doctest/doctest.h>

#include <cstdlib>

using namespace shw;

TEST_CASE("every text token reaches 4.5 to 1 on what it stands on") {
  const Theme& t = dark_theme();
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
  CHECK(contrast(t.head, t.side) >= 4.5);
  CHECK(contrast(t.head, t.background) >= 4.5);
  CHECK(contrast(t.accent_text, t.accent) >= 4.5);
  for (Rgba back : {t.bad_back, t.ok_back, t.warn_back, t.unknown_back}) {
    CHECK(contrast(t.text, back) >= 7);
    CHECK(contrast(mix(t.quiet, t.text, 0.35f), back) >= 4.5);
  }
}

TEST_CASE("a label is readable on the colour of every writer") {
  const Theme& t = dark_theme();
  for (MeshGrid grid : {MeshGrid{2, 32}, MeshGrid{1, 8}, MeshGrid{16, 1}, MeshGrid{32, 32}}) {
    for (std::uint32_t rank = 0; rank < grid.rows * grid.columns; ++rank) {
      Rgba fill = writer_colour(rank, grid);
      CHECK(contrast(readable_on(fill, t.dark_ink, t.light_ink), fill) >= 4.5);
    }
  }
}

TEST_CASE("neighbours in the mesh have different colours, and a rank has one colour") {
  MeshGrid grid{2, 32};
  for (std::uint32_t rank = 0; rank + 1 < 64; ++rank) {
    CHECK(writer_colour(rank, grid) != writer_colour(rank + 1, grid));
    CHECK(writer_colour(rank, grid) == writer_colour(rank, grid));
  }
  CHECK(luminance(writer_colour(32, grid)) > luminance(writer_colour(0, grid)));
}

TEST_CASE("a theme that lacks a token, or has an unknown one, is refused") {
  CHECK_FALSE(parse_theme(""));
  CHECK_FALSE(parse_theme("background #101010\n"));
  CHECK_FALSE(parse_theme("no-such-token #101010\n"));
  CHECK_FALSE(parse_theme("background #10101\n"));
}
