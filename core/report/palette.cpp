#include "core/report/palette.h"

#include <fmt/core.h>

#include <algorithm>

namespace shw {
namespace {

// Tones between those of the dark and the light desktop, because a page may be either.
constexpr RankTones kPageTones{0.53f, 0.635f, 0.14f, 0.09f};

}  // namespace

Palette palette_of(const Checkpoint& checkpoint, const Mesh* mesh) {
  std::uint32_t most = 0;
  for (const FileRow& file : checkpoint.files()) most = std::max(most, file.rank.value_or(0));
  std::uint32_t ranks = std::min(most, 1'000'000u) + 1;
  if (mesh != nullptr && !mesh->axes.empty() && mesh->size() >= ranks) {
    std::int64_t inner = mesh->axes.back().size;
    if (inner > 1 && inner < ranks) {
      auto hues = static_cast<std::uint32_t>(inner);
      return {hues, (ranks + hues - 1) / hues};
    }
  }
  return {ranks, 1};
}

Srgb Palette::srgb(std::uint32_t writer) const {
  return rank_colour(writer, {outer, inner}, kPageTones);
}

// WCAG contrast: on lighter colours black text is more readable than white.
bool Palette::is_light(std::optional<std::uint32_t> writer) const {
  return writer && luminance_of(srgb(*writer)) > 0.179f;
}

std::uint32_t Palette::rgb(std::uint32_t writer) const {
  const Srgb colour = srgb(writer);
  return static_cast<std::uint32_t>(colour.red << 16 | colour.green << 8 | colour.blue);
}

std::string Palette::colour(std::optional<std::uint32_t> writer) const {
  return writer ? fmt::format("#{:06x}", rgb(*writer)) : "none";
}

}  // namespace shw
