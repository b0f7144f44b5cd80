#include "core/report/svg_map.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/report/listing.h"

namespace shw {

std::string escaped(std::string_view text) {
  std::string safe;
  for (char c : printable(text)) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

namespace {

struct Scale {
  double across = 1, down = 1;  // pixels per element
};

std::string px(double value) {
  return fmt::format("{:.1f}", value);
}

constexpr double kWidth = 200, kHeight = 320, kMargin = 26;

struct Panel {
  const char* title;
  const char* kind;  // class of the figure: "saved", "expected", "after"
  const TiledTensor* tiling;
};

class Drawing {
 public:
  Drawing(const TileSlice& slice, Scale scale) : slice_(slice), scale_(scale) {}

  double width() const {
    return std::max(2.0, static_cast<double>(slice_.columns) * scale_.across);
  }
  double height() const { return std::max(2.0, static_cast<double>(slice_.rows) * scale_.down); }

  void tiles(const Palette& palette) {
    for (const SliceTile& tile : slice_.tiles) {
      std::string rank = tile.writer ? fmt::format("rank {}", *tile.writer) : "";
      std::string fill =
          tile.writer ? fmt::format(R"( fill="{}")", palette.colour(tile.writer)) : "";
      body_ += fmt::format(R"(<rect class="{}" x="{}" y="{}" width="{}" height="{}"{}>)"
                           "<title>{} [{}:{}, {}:{}]</title></rect>",
                           tile.writer ? "tile" : "bare", px(x(tile.left)), px(y(tile.top)),
                           px(x(tile.right) - x(tile.left)), px(y(tile.bottom) - y(tile.top)), fill,
                           rank, tile.top, tile.bottom, tile.left, tile.right);
      label(tile, rank, palette.is_light(tile.writer) ? "on dark" : "on");
    }
  }

  // Expected tiles are outlined, since nothing was written there.
  void outlines() {
    for (const SliceTile& tile : slice_.tiles) {
      body_ += "<rect class=\"outline\" x=\"" + px(x(tile.left)) + "\" y=\"" + px(y(tile.top)) +
               "\" width=\"" + px(x(tile.right) - x(tile.left)) + "\" height=\"" +
               px(y(tile.bottom) - y(tile.top)) + "\"/>";
      label(tile, tile.writer ? fmt::format("rank {}", *tile.writer) : "", "quiet");
    }
  }

  void seams() {
    for (const SliceTile& tile : slice_.tiles) {
      if (tile.left > 0) line(tile.left, tile.top, tile.left, tile.bottom);
      if (tile.top > 0) line(tile.left, tile.top, tile.right, tile.top);
    }
  }

  void lost(const TileSlice& boxes) {
    for (const SliceTile& box : boxes.tiles) {
      body_ += "<rect class=\"lost\" x=\"" + px(x(box.left)) + "\" y=\"" + px(y(box.top)) +
               "\" width=\"" + px(x(box.right) - x(box.left)) + "\" height=\"" +
               px(y(box.bottom) - y(box.top)) + "\"><title>lost</title></rect>";
    }
  }

  // Extents are written at the far ends of both axes.
  std::string svg(const std::string& rows_class, const std::string& columns_class,
                  const std::string& name) const {
    double w = width() + 2 * kMargin + 20, h = height() + 2 * kMargin;
    std::string text = "<svg role=\"img\" aria-label=\"" + escaped(name) + "\" width=\"" + px(w) +
                       "\" height=\"" + px(h) + "\" viewBox=\"0 0 " + px(w) + " " + px(h) + "\">" +
                       body_;
    text += fmt::format(R"(<text class="end {}" x="{}" y="{}" text-anchor="end">{}</text>)",
                        columns_class, px(x(0) + width()), px(kMargin - 8), slice_.columns);
    text += fmt::format(R"(<text class="end {}" x="{}" y="{}">{}</text>)", rows_class,
                        px(x(0) + width() + 6), px(y(0) + height()), slice_.rows);
    return text + "</svg>";
  }

 private:
  double x(std::int64_t column) const { return 2 + static_cast<double>(column) * scale_.across; }
  double y(std::int64_t row) const { return kMargin + static_cast<double>(row) * scale_.down; }

  void label(const SliceTile& tile, const std::string& text, const char* kind = "on") {
    double width = x(tile.right) - x(tile.left), height = y(tile.bottom) - y(tile.top);
    std::string shown = text;
    if (width < 8.0 * static_cast<double>(shown.size()) && tile.writer)
      shown = std::to_string(*tile.writer);
    if (shown.empty() || width < 8.0 * static_cast<double>(shown.size()) || height < 16) return;
    body_ += "<text class=\"" + std::string(kind) + "\" x=\"" +
             px((x(tile.left) + x(tile.right)) / 2) + "\" y=\"" +
             px((y(tile.top) + y(tile.bottom)) / 2 + 4) + "\" text-anchor=\"middle\">" + shown +
             "</text>";
  }

  void line(std::int64_t from_column, std::int64_t from_row, std::int64_t to_column,
            std::int64_t to_row) {
    body_ += "<line class=\"seam\" x1=\"" + px(x(from_column)) + "\" y1=\"" + px(y(from_row)) +
             "\" x2=\"" + px(x(to_column)) + "\" y2=\"" + px(y(to_row)) + "\"/>";
  }

  const TileSlice& slice_;
  Scale scale_;
  std::string body_;
};

bool differs(const TiledTensor& a, const TiledTensor* b, int dim) {
  if (b == nullptr || dim < 0) return false;
  auto d = static_cast<std::size_t>(dim);
  return a.shape.size() != b->shape.size() || a.shape[d] != b->shape[d];
}

std::string figure(const std::string& kind, const std::string& title, const std::string& note,
                   const std::string& svg) {
  return "<figure class=\"" + kind + "\"><figcaption><b>" + title + "</b> " + note +
         "</figcaption>" + svg + "</figure>\n";
}

std::string overview(const TensorPictures& pictures, const Palette& palette) {
  TileSlice slice = cut(pictures.saved, *pictures.overview, kMaxDrawnTiles);
  Scale scale{660.0 / static_cast<double>(std::max<std::int64_t>(slice.columns, 1)),
              150.0 / static_cast<double>(std::max<std::int64_t>(slice.rows, 1))};
  Drawing drawing(slice, scale);
  drawing.tiles(palette);
  std::string note = to_text(*pictures.overview) +
                     (slice.hidden > 0 ? "; " + human_count(slice.hidden) + " more not drawn" : "");
  return figure("overview", "All tiles", note, drawing.svg("", "", "all tiles"));
}

}  // namespace

std::string svg_pictures(const TensorPictures& pictures, const Palette& palette) {
  const TiledTensor& saved = pictures.saved;
  const TiledTensor* expected = pictures.expected ? &*pictures.expected : nullptr;
  const TiledTensor* after = pictures.after ? &*pictures.after : nullptr;
  auto drawable = [&](const TiledTensor* t) {
    return t != nullptr && t->shape.size() == saved.shape.size();
  };
  const TiledTensor* truth = expected != nullptr ? expected : after;
  std::vector<Panel> list{{"Saved", "saved", &saved}};
  if (drawable(expected)) list.push_back({"Expected", "expected", expected});
  if (drawable(after)) list.push_back({"After repair", "after", after});
  Scale scale;
  std::int64_t rows = 1, columns = 1;
  for (const Panel& picture : list) {
    auto along = [&](int dim) {
      return dim < 0 ? 1 : picture.tiling->shape[static_cast<std::size_t>(dim)];
    };
    rows = std::max(rows, along(pictures.slice.row));
    columns = std::max(columns, along(pictures.slice.column));
  }
  bool flat = pictures.slice.column < 0;
  scale = {(flat ? 60 : kWidth) / static_cast<double>(columns),
           kHeight / static_cast<double>(rows)};

  std::string html =
      "<p class=\"quiet\">" + escaped(to_text(pictures.slice)) + "</p><div class=\"maps\">\n";
  for (const Panel& picture : list) {
    TileSlice slice = cut(*picture.tiling, pictures.slice, kMaxDrawnTiles);
    TileSlice gone = cut({picture.tiling->shape, pictures.lost}, pictures.slice, kMaxDrawnTiles);
    Drawing drawing(slice, scale);
    bool is_saved = picture.tiling == &saved;
    if (picture.tiling == expected) {
      drawing.outlines();
    } else {
      drawing.tiles(palette);
    }
    if (picture.tiling == after) drawing.seams(), drawing.lost(gone);
    auto mark = [&](int dim) {
      if (is_saved) return differs(saved, truth, dim) ? "bad" : "";
      return picture.tiling == after && differs(saved, after, dim) ? "gold" : "";
    };
    std::string note = "<code>" + to_text(ExtentsView(picture.tiling->shape)) + "</code>";
    if (slice.hidden > 0) note += " " + human_count(slice.hidden) + " more tiles not drawn";
    html +=
        figure(picture.kind, picture.title, note,
               drawing.svg(mark(pictures.slice.row), mark(pictures.slice.column), picture.title));
  }
  html += "</div>\n";
  if (pictures.overview) html += overview(pictures, palette);
  return html;
}

}  // namespace shw
