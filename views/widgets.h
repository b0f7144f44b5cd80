// The few things that every region is put together from. All sizes are in units of Frame::px.
#pragma once

#include <string>
#include <string_view>

#include "views/frame.h"

namespace shw {

// Something to draw on from top to bottom: rows go between left and right, `y` moves down.
struct Column {
  ImDrawList* draw = nullptr;
  float left = 0, right = 0, y = 0;
  float bottom = 0;  // of the panel, where there is one
  float width() const { return right - left; }
};

float text_width(const ImFont* font, std::string_view text);
float text_height(const ImFont* font);
void draw_text(ImDrawList* draw, const ImFont* font, float x, float y, Rgba colour,
               std::string_view text);
// Vertically centred at `middle`; the second ends at `right`. Both give the width.
float text_from(ImDrawList* draw, const ImFont* font, float x, float middle, Rgba colour,
                std::string_view text);
float text_until(ImDrawList* draw, const ImFont* font, float right, float middle, Rgba colour,
                 std::string_view text);

void head(Frame& frame, Column& column, std::string_view text, std::string_view more = {});
void paragraph(Frame& frame, Column& column, const ImFont* font, Rgba colour,
               std::string_view text);
// "rank            33": the label quiet, the value right-aligned in the monospaced face; a value
// that is too long is cut in its middle and whole in a tooltip.
void row(Frame& frame, Column& column, std::string_view label, std::string_view value, Rgba colour);
// Extents whose numbers have colours of their own: those that differ from `other` are `wrong`.
void row_extents(Frame& frame, Column& column, std::string_view label, ExtentsView value,
                 ExtentsView other, Rgba wrong);
float extents_width(const ImFont* font, ExtentsView value);
void draw_extents(Frame& frame, ImDrawList* draw, const ImFont* font, float x, float middle,
                  ExtentsView value, ExtentsView other, Rgba colour, Rgba wrong);

enum class ButtonStyle { kPlain, kPrimary, kQuiet };
// Its upper left corner; the size follows from the label.
bool button(Frame& frame, const char* id, std::string_view label, ImVec2 at,
            ButtonStyle style = ButtonStyle::kPlain);
ImVec2 button_size(const Frame& frame, std::string_view label);
// A small framed word; gives its width.
float chip(Frame& frame, ImDrawList* draw, float x, float middle, std::string_view text,
           Rgba colour);
// A line to type in, in the letters of names. True when Enter was pressed in it.
bool text_field(Frame& frame, ImDrawList* draw, const char* id, const char* hint, ImVec2 at,
                ImVec2 size, std::string& text);
// The same that can be pressed.
bool chip_button(Frame& frame, const char* id, float x, float middle, std::string_view text,
                 float* width);
void tooltip(Frame& frame, std::string_view text);

// The sign of a tone, which does not rely on its colour.
enum class Sign { kBad, kWarn, kOk, kUnknown, kQuiet };
void draw_sign(Frame& frame, ImDrawList* draw, ImVec2 middle, float radius, Sign sign);

// While a frame is drawn: where its texts are noted. Null: nowhere.
void record_texts(Marks* marks);
void text_layer(const Frame& frame, int layer);

// Names the last item for driven tests.
void mark(Frame& frame, std::string_view name);
// The ring around what has the keyboard.
void focus_ring(Frame& frame, ImDrawList* draw);

// One region of the root window: background, scrolling, its own focus scope.
struct Region {
  ImVec2 min, max;
};
bool begin_region(Frame& frame, const char* id, Region region, Rgba background, bool scrolls);
void end_region();
// Makes what was drawn down to `column.y` scrollable.
void close_column(Frame& frame, const Column& column);

}  // namespace shw
