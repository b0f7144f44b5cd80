// Basic widgets. All sizes are in units of Frame::px.
#pragma once

#include <string>
#include <string_view>

#include "views/frame.h"

namespace shw {

// A vertical layout: rows span left to right, `y` advances downwards.
struct Column {
  ImDrawList* draw = nullptr;
  float left = 0, right = 0, y = 0;
  float bottom = 0;  // of the panel, if any
  float width() const { return right - left; }
};

float text_width(const ImFont* font, std::string_view text);
float text_height(const ImFont* font);
void draw_text(ImDrawList* draw, const ImFont* font, float x, float y, Rgba colour,
               std::string_view text);
// Text centred vertically at `middle`; the second ends at `right`. Both return the width.
float text_from(ImDrawList* draw, const ImFont* font, float x, float middle, Rgba colour,
                std::string_view text);
float text_until(ImDrawList* draw, const ImFont* font, float right, float middle, Rgba colour,
                 std::string_view text);

void head(Frame& frame, Column& column, std::string_view text, std::string_view more = {});
void paragraph(Frame& frame, Column& column, const ImFont* font, Rgba colour,
               std::string_view text);
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
float chip(Frame& frame, ImDrawList* draw, float x, float middle, std::string_view text,
           Rgba colour);
void tooltip(Frame& frame, std::string_view text);

// The symbol of a severity, in addition to its colour.
enum class Sign { kBad, kWarn, kOk, kUnknown, kQuiet };
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
