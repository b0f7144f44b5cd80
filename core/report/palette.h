// Colours of writer ranks in pages and terminals: hue by coordinate on the last mesh axis,
// lightness by the other axes. Without a mesh, hue by rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/mesh/mesh.h"
#include "core/model/checkpoint.h"
#include "core/report/writer_colour.h"

namespace shw {

struct Palette {
  std::uint32_t inner = 1, outer = 1;
  Srgb srgb(std::uint32_t writer) const;
  std::uint32_t rgb(std::uint32_t writer) const;                  // 0x4a73a0
  std::string colour(std::optional<std::uint32_t> writer) const;  // "#4a73a0", "none"
  bool is_light(std::optional<std::uint32_t> writer) const;       // needs black text
};
Palette palette_of(const Checkpoint& checkpoint, const Mesh* mesh);

}  // namespace shw
