#include "core/report/palette.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/eyes.h"

using namespace shw;

namespace {

double page_contrast(Srgb a, Srgb b) {
  float brighter = luminance_of(a), darker = luminance_of(b);
  if (brighter < darker) std::swap(brighter, darker);
  return (brighter + 0.05f) / (darker + 0.05f);
}

}  // namespace

TEST_CASE("eight ranks are eight colours on a page to every eye") {
  Palette one_row{8, 1}, two_rows{8, 2};
  for (const test::Eye* eye : test::kEyes) {
    CAPTURE(eye->name);
    double least = 1;
    for (std::uint32_t a = 0; a < 8; ++a) {
      for (std::uint32_t b = a + 1; b < 8; ++b)
        least = std::min(least, test::apart(one_row.srgb(a), one_row.srgb(b), *eye));
      // Neighbours in the other row differ too.
      CHECK(test::apart(two_rows.srgb(a), two_rows.srgb(a + 8), *eye) >= 0.05);
    }
    CHECK(least >= 0.02);
  }
}

TEST_CASE("a rank is read on its colour, and its tile is seen on a light and a dark page") {
  for (Palette palette : {Palette{8, 1}, Palette{32, 2}, Palette{1, 16}, Palette{16, 16}}) {
    for (std::uint32_t rank = 0; rank < palette.inner * palette.outer; ++rank) {
      const Srgb fill = palette.srgb(rank);
      const Srgb ink = palette.is_light(rank) ? Srgb{} : Srgb{255, 255, 255};
      CHECK(page_contrast(fill, ink) >= 4.5);
      CHECK(page_contrast(fill, {255, 255, 255}) >= 2.5);
      CHECK(page_contrast(fill, {0x15, 0x18, 0x1d}) >= 2.4);
    }
  }
  CHECK(Palette{8, 1}.colour(3).size() == 7);
  CHECK(Palette{8, 1}.colour(std::nullopt) == "none");
}
