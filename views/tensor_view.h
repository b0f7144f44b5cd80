// How the pictures of one tensor share the room: pure arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shw {

struct PanelWish {
  double columns = 1;    // extent drawn across
  float head_width = 0;  // what its title needs
};
// Pixels of one column so that all panels stand side by side at one scale, each at least as wide
// as its title, `gap` between them.
double column_pixels_for(std::span<const PanelWish> panels, float room, float gap);

}  // namespace shw
