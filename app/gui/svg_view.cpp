#include "app/gui/svg_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/report/svg_map.h"

namespace shw {
namespace {

constexpr std::size_t kMaxTriangles = 200'000;

std::string base64(std::string_view bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    unsigned group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      text += at + i > bytes.size() ? '=' : kLetters[group >> (18 - 6 * i) & 63];
  }
  return text;
}

std::string colour_text(Rgba colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour & 0xFF, colour >> 8 & 0xFF, colour >> 16 & 0xFF);
}

std::string opacity_text(Rgba colour) {
  const unsigned alpha = colour >> 24;
  return alpha == 255 ? "" : fmt::format(" fill-opacity=\"{:.2f}\"", alpha / 255.0);
}

// An SVG image element with the pixels of `box` copied from the screen.
std::string image_of(const Image& screen, ImVec4 box) {
  const auto inside = [](float at, int size) {
    return std::clamp(static_cast<int>(std::floor(at)), 0, size);
  };
  const int left = inside(box.x, screen.width), right = inside(box.z + 1, screen.width);
  const int top = inside(box.y, screen.height), bottom = inside(box.w + 1, screen.height);
  if (right <= left || bottom <= top) return {};
  Image part{right - left, bottom - top, {}};
  for (int y = top; y < bottom; ++y) {
    const auto row = screen.pixels.begin() + std::ptrdiff_t{y} * screen.width;
    part.pixels.insert(part.pixels.end(), row + left, row + right);
  }
  const auto png = png_of(part);
  if (!png) return {};
  return fmt::format(
      "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" href=\"data:image/png;base64,{}\"/>\n",
      left, top, part.width, part.height, base64(*png));
}

class SvgWriter {
 public:
  SvgWriter(std::span<const TextMark> texts, const Image& screen) : screen_(screen) {
    for (const TextMark& text : texts) texts_[{text.list, text.first_index}] = &text;
  }

  void add(const ImDrawList& list) {
    for (const ImDrawCmd& command : list.CmdBuffer) {
      if (command.UserCallback != nullptr) continue;
      begin_clip(command.ClipRect);
      add(list, command);
      end_clip();
    }
  }
  bool is_too_large() const { return triangles_ > kMaxTriangles; }
  std::string take() { return std::move(svg_); }

 private:
  using Corners = std::array<const ImDrawVert*, 3>;

  void add(const ImDrawList& list, const ImDrawCmd& command) {
    const bool is_font = command.GetTexID() == ImGui::GetIO().Fonts->TexID;
    const ImVec2 white = ImGui::GetIO().Fonts->TexUvWhitePixel;
    for (unsigned i = 0; i + 2 < command.ElemCount; i += 3) {
      const unsigned at = command.IdxOffset + i;
      if (auto text = texts_.find({&list, static_cast<int>(at)}); text != texts_.end()) {
        end_shapes();
        add_text(*text->second);
        const auto glyphs = static_cast<unsigned>(text->second->last_index) - at;
        if (glyphs >= 3) i += glyphs / 3 * 3 - 3;
        continue;
      }
      Corners corners{};
      for (unsigned c = 0; c < 3; ++c)
        corners[c] = &list.VtxBuffer[static_cast<int>(list.IdxBuffer[static_cast<int>(at + c)] +
                                                      command.VtxOffset)];
      const bool is_solid = is_font && std::ranges::all_of(corners, [&](const ImDrawVert* corner) {
                              return corner->uv.x == white.x && corner->uv.y == white.y;
                            });
      is_solid ? add_shape(corners) : add_texture(corners);
    }
    end_shapes();
    end_textures();
  }

  void add_shape(const Corners& corners) {
    end_textures();
    Rgba colour = corners[0]->col;
    // Edges fade out over a pixel on the screen; SVG draws smooth edges itself.
    for (const ImDrawVert* corner : corners) {
      if (corner->col >> 24 == 0) return;
      if (corner->col >> 24 > colour >> 24) colour = corner->col;
    }
    if (!colour_ || *colour_ != colour) {
      end_shapes();
      colour_ = colour;
    }
    ++triangles_;
    path_ += fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}z", corners[0]->pos.x,
                         corners[0]->pos.y, corners[1]->pos.x, corners[1]->pos.y, corners[2]->pos.x,
                         corners[2]->pos.y);
  }

  void end_shapes() {
    if (colour_ && !path_.empty())
      svg_ += fmt::format("<path d=\"{}\" fill=\"{}\"{}/>\n", path_, colour_text(*colour_),
                          opacity_text(*colour_));
    colour_.reset();
    path_.clear();
  }

  void add_texture(const Corners& corners) {
    end_shapes();
    for (const ImDrawVert* corner : corners) {
      const ImVec2 at = corner->pos;
      if (!texture_) texture_ = {at.x, at.y, at.x, at.y};
      *texture_ = {std::min(texture_->x, at.x), std::min(texture_->y, at.y),
                   std::max(texture_->z, at.x), std::max(texture_->w, at.y)};
    }
  }

  void end_textures() {
    if (!texture_) return;
    const ImVec4 box{std::max(texture_->x, clip_.x), std::max(texture_->y, clip_.y),
                     std::min(texture_->z, clip_.z), std::min(texture_->w, clip_.w)};
    svg_ += image_of(screen_, box);
    texture_.reset();
  }

  void add_text(const TextMark& text) {
    end_textures();
    const float size = text.box.w - text.box.y;
    svg_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\" textLength=\"{:.1f}\" "
        "lengthAdjust=\"spacingAndGlyphs\" fill=\"{}\"{}{}>{}</text>\n",
        text.box.x, text.box.y + size * 0.78f, size * 0.82f, text.box.z - text.box.x,
        colour_text(text.colour), opacity_text(text.colour), text.is_mono ? " class=\"m\"" : "",
        escaped(text.text));
  }

  void begin_clip(ImVec4 clip) {
    clip_ = clip;
    svg_ += fmt::format(
        "<svg x=\"{0:.0f}\" y=\"{1:.0f}\" width=\"{2:.0f}\" height=\"{3:.0f}\" "
        "viewBox=\"{0:.0f} {1:.0f} {2:.0f} {3:.0f}\">\n",
        clip.x, clip.y, std::max(0.0f, clip.z - clip.x), std::max(0.0f, clip.w - clip.y));
  }
  void end_clip() { svg_ += "</svg>\n"; }

  const Image& screen_;
  std::map<std::pair<const ImDrawList*, int>, const TextMark*> texts_;
  std::string svg_, path_;
  std::optional<Rgba> colour_;     // of `path_`
  std::optional<ImVec4> texture_;  // the box of textures not yet written
  ImVec4 clip_;
  std::size_t triangles_ = 0;
};

}  // namespace

Result<std::string> svg_of(const ImDrawData& frame, std::span<const TextMark> texts,
                           const Image& screen) {
  SvgWriter writer(texts, screen);
  for (int i = 0; i < frame.CmdListsCount; ++i) writer.add(*frame.CmdLists[i]);
  if (writer.is_too_large())
    return fail(ErrorKind::kUnsupported, "the picture has more shapes than an SVG viewer opens", {},
                "Export it as PNG.");
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
             "viewBox=\"0 0 {0} {1}\">\n"
             "<style>text{{font-family:Inter,\"Segoe UI\",Helvetica,Arial,sans-serif;"
             "white-space:pre}}.m{{font-family:\"JetBrains Mono\",Consolas,monospace}}"
             "path{{shape-rendering:crispEdges}}</style>\n",
             screen.width, screen.height) +
         writer.take() + "</svg>\n";
}

}  // namespace shw
