#include "core/report/palette.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace shw {
namespace {

std::uint32_t rgb_of(double hue, double saturation, double lightness) {
  auto channel = [&](double n) {
    double k = std::fmod(n + hue / 30, 12);
    double a = saturation * std::min(lightness, 1 - lightness);
    double value = lightness - a * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
    return static_cast<std::uint32_t>(std::lround(value * 255));
  };
  return channel(0) << 16 | channel(8) << 8 | channel(4);
}

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

bool Palette::is_light(std::optional<std::uint32_t> writer) const {
  return writer && outer > 1 && *writer / inner % outer * 2 >= outer - 1;
}

// From blue through violet and red to olive: neighbours differ, and no writer is the gold of a
// repair or the pure red of a defect.
std::uint32_t Palette::rgb(std::uint32_t writer) const {
  double along = inner > 1 ? static_cast<double>(writer % inner) / inner : 0;
  double step = outer > 1 ? static_cast<double>(writer / inner % outer) / (outer - 1) : 0;
  double hue = std::fmod(207 + 220 * along, 360.0);
  return rgb_of(hue, 0.36 + 0.06 * step, 0.45 + 0.18 * step);
}

std::string Palette::colour(std::optional<std::uint32_t> writer) const {
  return writer ? fmt::format("#{:06x}", rgb(*writer)) : "none";
}

}  // namespace shw
