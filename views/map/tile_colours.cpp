#include "views/map/tile_colours.h"

#include <fmt/core.h>

#include <algorithm>

#include "views/controls.h"
#include "views/imgui_versions.h"
#include "views/map/tile_map.h"
#include "views/text.h"

namespace shw {
namespace {

// Tensors above this size are not read automatically on selection: 0.3 s from a slow disk.
constexpr std::uint64_t kMaxReadOnSelection = std::uint64_t{64} << 20;

// A colour sample with its sign, as on the tiles.
float draw_swatch(Frame& frame, ImDrawList* draw, float x, float middle, const PaintGroup& group) {
  float side = frame.px(14);
  ImVec2 min{x, middle - side / 2}, max{x + side, middle + side / 2};
  Rgba fill = colour_of(group, frame.theme.tiles);
  if (group.token == PaintGroup::Token::kUnread) fill = mix(fill, frame.theme.background, 0.72f);
  draw->AddRectFilled(min, max, fill, frame.px(2));
  if (group.token == PaintGroup::Token::kUnread)
    draw_hatching(frame, draw, min, max, frame.theme.bad);
  if (group.token == PaintGroup::Token::kNotLooked)
    draw_hatching(frame, draw, min, max, frame.theme.quiet);
  const ImFont* font = frame.fonts.mono_small;
  if (!group.sign.empty())
    text_from(draw, font, x + (side - text_width(font, group.sign)) / 2, middle,
              readable_on(fill, frame.theme.dark_ink, frame.theme.light_ink), group.sign);
  return side;
}

// Legend entries from left to right; entries without room are counted.
class LegendLine {
 public:
  LegendLine(Frame& frame, const Column& column, float until)
      : frame_(frame),
        draw_(column.draw),
        x_(column.left),
        right_(until),
        middle_(column.y + frame.px(11)) {}

  float left() const { return right_ - x_; }
  void word(std::string_view text, Rgba colour) {
    const ImFont* font = frame_.fonts.small;
    if (left() < frame_.px(24)) return;
    x_ += text_from(draw_, font, x_, middle_, colour, elide_end(text, left(), measure_with(font))) +
          frame_.px(12);
  }
  bool draw_entry(const PaintGroup& group, std::size_t index) {
    std::string text = group.label;
    if (group.tiles > 0 && !group.label.empty())
      text += fmt::format(" ({})", human_count(group.tiles));
    float wide = frame_.px(14 + 6 + 14) + text_width(frame_.fonts.small, text);
    if (wide > left()) return false;
    float from = x_;
    x_ += draw_swatch(frame_, draw_, x_, middle_, group) + frame_.px(6);
    x_ +=
        text_from(draw_, frame_.fonts.small, x_, middle_, frame_.theme.text, text) + frame_.px(14);
    if (frame_.marks != nullptr)
      frame_.marks->items[fmt::format("legend/{}", index)] = {from, middle_ - frame_.px(9), x_,
                                                              middle_ + frame_.px(9)};
    return true;
  }
  // A scale from least to greatest with both ends labelled.
  void scale(const TilePaint& paint) {
    if (paint.to.empty()) return;
    const ImFont* mono = frame_.fonts.mono_small;
    float wide = std::min(frame_.px(120), left() - text_width(mono, paint.from) -
                                              text_width(mono, paint.to) - frame_.px(28));
    if (wide < frame_.px(32)) return;
    x_ += text_from(draw_, mono, x_, middle_, frame_.theme.text, paint.from) + frame_.px(6);
    float high = frame_.px(6), step = wide / static_cast<float>(paint.steps);
    for (std::size_t s = 0; s < paint.steps; ++s) {
      float at = x_ + step * static_cast<float>(s);
      draw_->AddRectFilled({std::floor(at), middle_ - high}, {std::ceil(at + step), middle_ + high},
                           paint.groups[paint.first_step + s].own);
    }
    if (frame_.marks != nullptr)
      frame_.marks->items["legend/scale"] = {x_, middle_ - high, x_ + wide, middle_ + high};
    x_ += wide + frame_.px(6);
    x_ += text_from(draw_, mono, x_, middle_, frame_.theme.text, paint.to) + frame_.px(16);
  }

 private:
  Frame& frame_;
  ImDrawList* draw_;
  float x_, right_, middle_;
};

void draw_files(LegendLine& line, const Frame& frame, const TilePaint& paint) {
  line.word(paint.title, frame.theme.quiet);
  std::size_t count = paint.groups.size() - 1, shown = 0;
  // More than a dozen files use a colour gradient; only first and last are labelled.
  if (count > 12) {
    line.draw_entry(paint.groups[1], 1);
    line.word("to", frame.theme.quiet);
    line.draw_entry(paint.groups[count], count);
    line.word("in this order", frame.theme.quiet);
  } else {
    while (shown < count && line.draw_entry(paint.groups[shown + 1], shown + 1)) ++shown;
    if (shown < count) line.word(fmt::format("and {} more", count - shown), frame.theme.quiet);
  }
  if (paint.groups[0].tiles > 0) line.draw_entry(paint.groups[0], 0);
}

void draw_findings_legend(LegendLine& line, const Frame& frame, const TilePaint& paint) {
  line.word(paint.title, frame.theme.quiet);
  for (std::size_t g = 1; g < paint.groups.size(); ++g) {
    if (line.draw_entry(paint.groups[g], g)) continue;
    line.word(fmt::format("and {} more", paint.groups.size() - g), frame.theme.quiet);
    return;
  }
  if (paint.groups.size() > 1 && paint.groups[0].tiles > 0) line.draw_entry(paint.groups[0], 0);
}

void draw_statistic_legend(LegendLine& line, const Frame& frame, const TilePaint& paint) {
  line.word(paint.title, frame.theme.quiet);
  line.scale(paint);
  if (paint.looked < paint.of)
    line.word(fmt::format("{} of {} checked", human_count(paint.looked), human_count(paint.of)),
              frame.theme.warn);
  for (std::size_t g = paint.first_step; g-- > 0;) {
    if (paint.groups[g].tiles > 0) line.draw_entry(paint.groups[g], g);
  }
}

const verbs::TileValues* known_values(const Snapshot& snapshot) {
  return snapshot.tensor ? tile_values_of(snapshot, *snapshot.tensor) : nullptr;
}

// The button that starts or stops reading, at the end of the line.
float draw_job_chip(Frame& frame, UiState& state, const Column& column) {
  if (!is_statistic(state.colour_by) || are_tile_values_complete(frame.snapshot))
    return column.right;
  bool runs = state.requested_tile_values == frame.snapshot.tensor && frame.job.looking;
  std::string text = "Stop reading";
  if (!runs) {
    auto tiles = frame.snapshot.checkpoint->chunks(*frame.snapshot.tensor).size();
    text = "Read " + plural(tiles, "tile") + ", " + human_bytes(frame.digest.paints->bytes);
  }
  float width = chip_width(frame, text);
  if (width > column.width()) return column.right;
  bool pressed =
      chip_button(frame, "legend/look", column.right - width, column.y + frame.px(11), text, &width,
                  runs ? "Stops reading. What was read stays."
                       : "Reads every element of this tensor and colours its tiles.");
  if (pressed && runs) {
    state.requested_tile_values.reset();
    frame.emit(TileValuesCommand{true});
  } else if (pressed) {
    request_tile_values(frame, state);
  }
  return column.right - width - frame.px(12);
}

}  // namespace

std::shared_ptr<const TilePaint> current_tile_paint(const Frame& frame, const UiState& state) {
  if (state.colour_by == ColourBy::kWriter || frame.digest.paints == nullptr) return nullptr;
  return (*frame.digest.paints)[state.colour_by];
}

bool are_tile_values_complete(const Snapshot& snapshot) {
  const verbs::TileValues* values = known_values(snapshot);
  return values != nullptr && values->is_complete();
}

void request_tile_values(Frame& frame, UiState& state) {
  if (!frame.snapshot.tensor || are_tile_values_complete(frame.snapshot)) return;
  if (!is_statistic(state.colour_by)) state.colour_by = ColourBy::kNonFinite;
  state.requested_tile_values = frame.snapshot.tensor;
  frame.emit(TileValuesCommand{
      false, std::string(frame.snapshot.checkpoint->fqn(*frame.snapshot.tensor))});
}

void colour_by(Frame& frame, UiState& state, ColourBy by) {
  state.colour_axis = -1;
  state.colour_by = by;
  state.isolated.reset();
  if (is_statistic(by)) return request_tile_values(frame, state);
}

void request_or_cancel_tile_values(Frame& frame, UiState& state) {
  bool wanted = is_statistic(state.colour_by);
  if (!state.requested_tile_values && !wanted) return;
  if (wanted && state.requested_tile_values == frame.snapshot.tensor) return;
  if (!wanted) {  // another colouring: cancel reading
    if (!are_tile_values_complete(frame.snapshot)) frame.emit(TileValuesCommand{true});
    state.requested_tile_values.reset();
    return;
  }
  // The colouring stays for a newly selected tensor: small ones are read, for large ones a button
  // is shown.
  if (!state.requested_tile_values || known_values(frame.snapshot) != nullptr) return;
  if (frame.digest.paints->bytes <= kMaxReadOnSelection) return request_tile_values(frame, state);
  frame.emit(TileValuesCommand{true});
}

void draw_legend(Frame& frame, UiState& state, Column& column) {
  request_or_cancel_tile_values(frame, state);
  if (state.colour_by == ColourBy::kWriter) return;
  column.y -= frame.px(8);
  LegendLine line(frame, column, draw_job_chip(frame, state, column));
  auto paint = current_tile_paint(frame, state);
  if (paint == nullptr)
    line.word("no tile's values have been checked: the tiles have their writers' colours",
              frame.theme.quiet);
  else if (state.colour_by == ColourBy::kFile)
    draw_files(line, frame, *paint);
  else if (state.colour_by == ColourBy::kFinding)
    draw_findings_legend(line, frame, *paint);
  else
    draw_statistic_legend(line, frame, *paint);
  column.take(frame.px(30));
}

std::string_view expected_map_caption(const UiState& state) {
  return state.colour_by == ColourBy::kWriter ? "" : "not coloured";
}

std::string tile_values_text(const Frame& frame, ChunkId chunk) {
  const Checkpoint& checkpoint = *frame.snapshot.checkpoint;
  TensorId tensor = checkpoint.tensor_of(chunk);
  const verbs::TileValues* values = tile_values_of(frame.snapshot, tensor);
  std::size_t at = index_of(chunk) - checkpoint.chunks(tensor).first;
  if (values == nullptr || at >= values->tiles.size()) return {};
  const verbs::TileNumbers& tile = values->tiles[at];
  if (tile.state == verbs::TileNumbers::State::kNotLooked) return "values not checked";
  if (tile.state == verbs::TileNumbers::State::kUnread) return "values cannot be read";
  double share = tile.elements == 0
                     ? 0
                     : 100.0 * static_cast<double>(tile.zero) / static_cast<double>(tile.elements);
  std::string text = fmt::format("{:.4g} % zero", share);
  if (!values->has_numbers) return text;
  if (tile.nan + tile.infinite > 0)
    text = fmt::format("{} NaN, {} infinite, ", human_count(tile.nan), human_count(tile.infinite)) +
           text;
  if (tile.greatest >= 0) text += fmt::format(", largest |x| {:.6g}", tile.greatest);
  return text;
}

}  // namespace shw
