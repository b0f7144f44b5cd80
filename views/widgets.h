// Basic widgets. All sizes are in units of Frame::px.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "views/frame.h"
#include "views/text.h"

namespace shw {

// The symbol of a severity, in addition to its colour.
enum class Sign { kBad, kWarn, kOk, kUnknown, kQuiet };

// The space between two parts of a column, in units of Frame::px.
enum class Gap : std::uint8_t { kNone = 0, kTight = 4, kSmall = 8, kMedium = 12, kLarge = 18 };
float pixels(const Frame& frame, Gap gap);

// A vertical layout: rows span left to right, `y` advances downwards.
struct Column {
  ImDrawList* draw = nullptr;
  float left = 0, right = 0, y = 0;
  float bottom = 0;  // of the panel, if any
  float width() const { return right - left; }
  ImVec2 at() const { return {left, y}; }
  // Reserves `height` pixels at the current position; returns the y at which they begin.
  float take(float height) {
    y += height;
    return y - height;
  }
};

float text_width(const ImFont* font, std::string_view text);
float text_height(const ImFont* font);
Measure measure_with(const ImFont* font);
void draw_text(ImDrawList* draw, const ImFont* font, float x, float y, Rgba colour,
               std::string_view text);
// Text centred vertically at `middle`; the second ends at `right`. Both return the width.
float text_from(ImDrawList* draw, const ImFont* font, float x, float middle, Rgba colour,
                std::string_view text);
float draw_text_ending_at(ImDrawList* draw, const ImFont* font, float right, float middle,
                          Rgba colour, std::string_view text);

void head(Frame& frame, Column& column, std::string_view text, std::string_view more = {});
// Wrapped text, with a gap below it.
void paragraph(Frame& frame, Column& column, const ImFont* font, Rgba colour, std::string_view text,
               Gap below = Gap::kNone);
void body(Frame& frame, Column& column, std::string_view text, Gap below = Gap::kNone);
void caption(Frame& frame, Column& column, std::string_view text, Gap below = Gap::kNone);
// A small paragraph beside a sign.
void signed_paragraph(Frame& frame, Column& column, Sign sign, Rgba colour, std::string_view text,
                      Gap below = Gap::kNone);
// One line, cut in the middle if it is too long, with a gap below it.
void text_line(Frame& frame, Column& column, const ImFont* font, Rgba colour, std::string_view text,
               Gap below = Gap::kNone);
void gap(const Frame& frame, Column& column, Gap size);
// The column without its first `units` on the left.
Column indented(const Frame& frame, Column column, float units);
// "rank            33": quiet label, right-aligned monospaced value; long values are elided in the
// middle, with a tooltip.
void row(Frame& frame, Column& column, std::string_view label, std::string_view value, Rgba colour);
// Extents in which numbers that differ from `other` have colour `wrong`.
void row_extents(Frame& frame, Column& column, std::string_view label, ExtentsView value,
                 ExtentsView other, Rgba wrong);
float extents_width(const ImFont* font, ExtentsView value);
void draw_extents(Frame& frame, ImDrawList* draw, const ImFont* font, float x, float middle,
                  ExtentsView value, ExtentsView other, Rgba colour, Rgba wrong);

// A small framed word; returns its width.
float chip_width(const Frame& frame, std::string_view text);
float chip(Frame& frame, ImDrawList* draw, float x, float middle, std::string_view text,
           Rgba colour);
void tooltip(Frame& frame, std::string_view text);

Sign sign_of(Tone tone);
void draw_sign(Frame& frame, ImDrawList* draw, ImVec2 middle, float radius, Sign sign);

// Sets where drawn texts are recorded during a frame; null: nowhere.
void record_texts(Marks* marks);
void text_layer(const Frame& frame, int layer);

// Names the last item, for driven tests.
void mark(Frame& frame, std::string_view name);
// The focus ring of the item with the keyboard, and whether the last item has it.
bool has_ring(const Frame& frame);
void focus_ring(Frame& frame, ImDrawList* draw);

// A region of the root window with its own background, scrolling and focus scope.
struct Region {
  ImVec2 min, max;
};
bool begin_region(Frame& frame, const char* id, Region region, Rgba background, bool scrolls);
void end_region();
// Sets the scroll height to `column.y`.
void close_column(Frame& frame, const Column& column);

}  // namespace shw
