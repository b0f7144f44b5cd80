#include "core/report/map_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/version.h"
#include "core/report/report.h"

namespace shw {
namespace {

// Positions of an axis' cuts on the character grid, at least `gap` apart so that every tile has
// room for its rank. If there is no room for all, the middle ones fold into one strip.
class Axis {
 public:
  Axis(std::vector<std::int64_t> cuts, std::int64_t scale, int room, int gap) {
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    auto fit = static_cast<std::size_t>(std::max(room / gap, 4));
    if (cuts.size() > fit + 1) {
      std::size_t head = fit - 2;
      folded_ = cuts.size() - head - 2;
      fold_from_ = cuts[head - 1];
      fold_to_ = cuts[cuts.size() - 2];
      cuts.erase(cuts.begin() + static_cast<std::ptrdiff_t>(head), cuts.end() - 2);
      scale = 0;
    }
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      int wanted = scale > 0
                       ? static_cast<int>(
                             static_cast<double>(cuts[i]) * room / static_cast<double>(scale) + 0.5)
                       : 0;
      int least = i == 0 ? 0 : at_[cuts[i - 1]] + gap;
      at_[cuts[i]] = std::max(wanted, least);
      last_ = at_[cuts[i]];
    }
  }
  // Empty for cuts inside the fold.
  std::optional<int> at(std::int64_t cut) const {
    auto found = at_.find(cut);
    return found == at_.end() ? std::nullopt : std::optional(found->second);
  }
  int length() const { return last_ + 1; }
  bool folds(std::int64_t from, std::int64_t to) const {
    return folded_ > 0 && from >= fold_from_ && to <= fold_to_;
  }
  std::size_t folded() const { return folded_; }
  std::int64_t hidden_begin() const { return fold_from_; }
  std::int64_t hidden_end() const { return fold_to_; }

 private:
  std::map<std::int64_t, int> at_;
  int last_ = 0;
  std::size_t folded_ = 0;
  std::int64_t fold_from_ = 0, fold_to_ = 0;
};

// Background colours of tiles by writer, if the terminal has colours.
struct WriterBackgrounds {
  const Palette* palette = nullptr;
  bool millions = false;

  // The escape sequence for the writer's background; the terminal's own if there is no writer.
  std::string change(std::optional<std::uint32_t> writer) const {
    if (palette == nullptr) return {};
    if (!writer) return "\x1b[0m";
    std::uint32_t rgb = palette->rgb(*writer);
    bool is_light = palette->is_light(writer);
    if (!millions) {
      return fmt::format("\x1b[48;5;{};38;5;{}m", nearest_of_256(rgb),
                         is_light ? kBlackOf256 : kWhiteOf256);
    }
    int letters = is_light ? 0 : 255;
    return fmt::format("\x1b[48;2;{};{};{};38;2;{};{};{}m", rgb >> 16, rgb >> 8 & 255, rgb & 255,
                       letters, letters, letters);
  }

  static constexpr int kBlackOf256 = 16, kWhiteOf256 = 231;

  // The nearest colour of the 6 x 6 x 6 cube of the 256-colour palette, which starts at 16.
  static std::uint32_t nearest_of_256(std::uint32_t rgb) {
    static constexpr int kLevels[] = {0, 95, 135, 175, 215, 255};
    std::uint32_t number = 0;
    for (int shift : {16, 8, 0}) {
      int value = static_cast<int>(rgb >> shift & 255);
      std::uint32_t best = 0;
      for (std::uint32_t i = 1; i < 6; ++i) {
        if (std::abs(kLevels[i] - value) < std::abs(kLevels[best] - value)) best = i;
      }
      number = number * 6 + best;
    }
    return 16 + number;
  }
};

// A grid of characters. Lines are stored as bits of directions (1 up, 2 right, 4 down, 8 left), so
// that adjacent tiles share one border.
class Canvas {
 public:
  Canvas(int lines, int columns)
      : lines_(lines),
        columns_(columns),
        seams_(static_cast<std::size_t>(lines * columns), 0),
        letters_(static_cast<std::size_t>(lines * columns), 0),
        writers_(static_cast<std::size_t>(lines * columns)) {}

  void box(int top, int left, int bottom, int right) {
    for (int x = left; x < right; ++x) {
      for (int y : {top, bottom}) seam(y, x, 2), seam(y, x + 1, 8);
    }
    for (int y = top; y < bottom; ++y) {
      for (int x : {left, right}) seam(y, x, 4), seam(y + 1, x, 1);
    }
  }

  // Fills the inside of a box.
  void paint(int top, int left, int bottom, int right, std::uint32_t writer) {
    for (int y = top + 1; y < bottom; ++y) {
      for (int x = left + 1; x < right; ++x) writers_[index(y, x)] = writer;
    }
  }

  // Writes the first choice that fits into the middle of a box.
  void label(int top, int left, int bottom, int right, const std::vector<std::string>& choices) {
    int room = right - left - 1;
    if (bottom - top < 2) return;
    for (const std::string& text : choices) {
      int length = static_cast<int>(text.size());
      if (length > room) continue;
      int y = (top + bottom) / 2, x = left + 1 + (room - length) / 2;
      for (int i = 0; i < length; ++i)
        letters_[index(y, x + i)] = text[static_cast<std::size_t>(i)];
      return;
    }
  }

  std::vector<std::string> text(const WriterBackgrounds& grounds, bool utf8) const {
    std::vector<std::string> rows;
    for (int y = 0; y < lines_; ++y) {
      std::string row;
      std::optional<std::uint32_t> on;
      for (int x = 0; x < columns_; ++x) {
        const auto& writer = writers_[index(y, x)];
        if (writer != on) row += grounds.change(writer);
        on = writer;
        row += at(y, x, utf8);
      }
      if (on) row += grounds.change({});
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  std::string at(int y, int x, bool utf8) const {
    static constexpr const char* kLines[16] = {" ", "╵", "╶", "└", "╷", "│", "┌", "├",
                                               "╴", "┘", "─", "┴", "┐", "┤", "┬", "┼"};
    unsigned mask = seams_[index(y, x)];
    char letter = letters_[index(y, x)];
    if (letter != 0) return std::string(1, letter);
    if (utf8) return kLines[mask];
    return std::string(1, mask == 0 ? ' ' : mask == 10 ? '-' : mask == 5 ? '|' : '+');
  }
  std::size_t index(int y, int x) const {
    assert(y >= 0 && y < lines_ && x >= 0 && x < columns_);
    return static_cast<std::size_t>(y * columns_ + x);
  }
  void seam(int y, int x, unsigned direction) {
    seams_[index(y, x)] = static_cast<unsigned char>(seams_[index(y, x)] | direction);
  }
  int lines_, columns_;
  std::vector<unsigned char> seams_;
  std::vector<char> letters_;
  std::vector<std::optional<std::uint32_t>> writers_;  // background of each character
};

struct TextPicture {
  std::string title = {};
  Ink ink = Ink::kPlain;
  std::vector<std::string> lines = {};
  std::size_t width = 0;  // of each line
};

// The scale: equal for pictures side by side.
struct MapScale {
  std::int64_t rows, columns;  // this many elements ...
  int down, across;            // correspond to this many characters
  WriterBackgrounds grounds;
  bool utf8;
};

TextPicture draw_slice(const TileSlice& slice, const MapScale& sheet) {
  std::vector<std::int64_t> row_cuts{0, slice.rows}, column_cuts{0, slice.columns};
  std::size_t longest = 1;
  for (const SliceTile& tile : slice.tiles) {
    row_cuts.insert(row_cuts.end(), {tile.top, tile.bottom});
    column_cuts.insert(column_cuts.end(), {tile.left, tile.right});
    if (tile.writer) longest = std::max(longest, std::to_string(*tile.writer).size());
  }
  Axis down(row_cuts, sheet.rows, sheet.down, 2);
  Axis across(column_cuts, sheet.columns, sheet.across, static_cast<int>(longest) + 1);
  Canvas canvas(down.length(), across.length());
  canvas.box(0, 0, down.length() - 1, across.length() - 1);
  auto fold = [&](const Axis& axis) { return fmt::format("{} more", axis.folded()); };
  if (down.folded() > 0) {
    int top = *down.at(down.hidden_begin()), bottom = *down.at(down.hidden_end());
    canvas.box(top, 0, bottom, across.length() - 1);
    canvas.label(top, 0, bottom, across.length() - 1, {fold(down), ".."});
  }
  if (across.folded() > 0) {
    int left = *across.at(across.hidden_begin()), right = *across.at(across.hidden_end());
    canvas.box(0, left, down.length() - 1, right);
    canvas.label(0, left, down.length() - 1, right, {fold(across), "..", "."});
  }
  for (const SliceTile& tile : slice.tiles) {
    auto top = down.at(tile.top), bottom = down.at(tile.bottom);
    auto left = across.at(tile.left), right = across.at(tile.right);
    if (!top || !bottom || !left || !right) continue;  // inside the fold
    if (down.folds(tile.top, tile.bottom) || across.folds(tile.left, tile.right)) continue;
    canvas.box(*top, *left, *bottom, *right);
    if (!tile.writer) continue;
    canvas.paint(*top, *left, *bottom, *right, *tile.writer);
    std::string rank = std::to_string(*tile.writer);
    canvas.label(*top, *left, *bottom, *right, {"rank " + rank, rank});
  }
  TextPicture picture;
  picture.lines = canvas.text(sheet.grounds, sheet.utf8);
  picture.width = static_cast<std::size_t>(across.length());
  return picture;
}

// Puts pictures side by side, with titles above.
std::string beside(const std::vector<TextPicture>& pictures, const TextStyle& style) {
  static constexpr std::size_t kGap = 4;
  std::size_t height = 0;
  std::vector<std::size_t> widths;
  for (const TextPicture& picture : pictures) {
    height = std::max(height, picture.lines.size());
    widths.push_back(std::max(picture.width, display_width(picture.title)) + kGap);
  }
  std::string text;
  auto cell = [&](std::size_t i, std::string_view content, std::size_t width, Ink ink) {
    bool last = i + 1 == pictures.size();
    text += inked(style, ink, content) + std::string(last ? 0 : widths[i] - width, ' ');
    if (!last) return;
    while (text.ends_with(' ')) text.pop_back();
    text += "\n";
  };
  for (std::size_t i = 0; i < pictures.size(); ++i)
    cell(i, pictures[i].title, display_width(pictures[i].title), pictures[i].ink);
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t i = 0; i < pictures.size(); ++i) {
      bool ends = y >= pictures[i].lines.size();
      cell(i, ends ? std::string_view() : pictures[i].lines[y], ends ? 0 : pictures[i].width,
           Ink::kPlain);
    }
  }
  return text;
}

std::string overview_text(const TiledTensor& saved, const Slice& look,
                          const WriterBackgrounds& grounds, const TextStyle& style) {
  TileSlice slice = cut(saved, look);
  std::string text = "\n" + inked(style, Ink::kQuiet, "all tiles: " + to_text(look)) + "\n";
  MapScale sheet{slice.rows, slice.columns, 6, style.width - 2, grounds, style.utf8};
  for (const std::string& line : draw_slice(slice, sheet).lines) text += line + "\n";
  return text;
}

}  // namespace

std::string map_to_text(const std::string& fqn, const TiledTensor& saved,
                        const TiledTensor* expected, const TextStyle& style,
                        const Palette* palette) {
  Slice slice = choose_slice(saved, expected);
  std::string text = inked(style, Ink::kBold, printable(fqn)) + "\n";
  if (slice.row >= 0) text += inked(style, Ink::kQuiet, to_text(slice)) + "\n";
  text += "\n";
  TileSlice before = cut(saved, slice);
  bool comparable = expected != nullptr && expected->shape.size() == saved.shape.size();
  TileSlice after = comparable ? cut(*expected, slice) : TileSlice{};
  // Both use the same scale; a line is about twice as high as a column is wide.
  std::int64_t rows = std::max(before.rows, comparable ? after.rows : 1);
  std::int64_t columns = std::max(before.columns, comparable ? after.columns : 1);
  int room = comparable ? (style.width - 6) / 2 : style.width - 2;
  double ratio = static_cast<double>(std::max<std::int64_t>(rows, 1)) /
                 static_cast<double>(std::max<std::int64_t>(columns, 1));
  int across = slice.column >= 0 ? std::min(room, 40) : 14;
  int down = std::clamp(static_cast<int>(ratio * across / 2), 4, 16);
  bool same_shape = comparable && same(saved.shape, expected->shape);
  Ink ink = comparable && !same_shape ? Ink::kRed : Ink::kPlain;
  WriterBackgrounds grounds{style.colour ? palette : nullptr, style.millions};
  MapScale sheet{rows, columns, down, across, grounds, style.utf8};
  std::vector<TextPicture> pictures;
  auto add = [&](const char* what, const TiledTensor& laid, const TileSlice& part, Ink of_title) {
    pictures.push_back(draw_slice(part, sheet));
    pictures.back().title = what + to_text(ExtentsView(laid.shape));
    pictures.back().ink = of_title;
  };
  add("saved ", saved, before, ink);
  if (comparable) add("expected ", *expected, after, Ink::kPlain);
  text += beside(pictures, style);
  if (before.hidden > 0) text += human_count(before.hidden) + " more tiles are not drawn\n";
  if (expected != nullptr && !comparable) {
    text += "expected " + to_text(ExtentsView(expected->shape)) + ": of another rank, not drawn\n";
  }
  if (auto other = overview_slice(saved, slice))
    text += overview_text(saved, *other, grounds, style);
  return text;
}

namespace {

nlohmann::ordered_json to_json(const TiledTensor& tiling) {
  auto tiles = nlohmann::ordered_json::array();
  for (const RankTile& tile : tiling.tiles) {
    nlohmann::ordered_json entry{{"offsets", tile.box.offsets}, {"sizes", tile.box.sizes}};
    entry["writer"] = tile.writer ? nlohmann::ordered_json(*tile.writer) : nullptr;
    tiles.push_back(std::move(entry));
  }
  return {{"shape", tiling.shape}, {"tiles", std::move(tiles)}};
}

}  // namespace

std::string tensor_map_to_json(const std::string& fqn, const TiledTensor& saved,
                               const TiledTensor* expected, const FilledTensor* filled) {
  nlohmann::ordered_json json{{"schema", kJsonSchema}, {"fqn", fqn}, {"saved", to_json(saved)}};
  json["expected"] = expected != nullptr ? to_json(*expected) : nlohmann::ordered_json(nullptr);
  if (filled != nullptr) {
    auto boxes = nlohmann::ordered_json::array();
    for (const Box& box : filled->boxes)
      boxes.push_back({{"offsets", box.offsets}, {"sizes", box.sizes}});
    json["filled"] = {{"lost", filled->lost}, {"lost_boxes", std::move(boxes)}};
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace shw
