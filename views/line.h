// One line of a column: cells from left to right, and cells from its end.
#pragma once

#include "views/controls.h"
#include "views/widgets.h"

namespace shw {

// Moves the column on when it is made. A button or chip that does not fit begins another line.
// Cells are centred vertically. `height` is in units of Frame::px.
class Line {
 public:
  Line(Frame& frame, Column& column, float height = 30, Gap below = Gap::kSmall);

  bool button(const char* id, std::string_view label, const Tip& tip,
              ButtonStyle style = ButtonStyle::kPlain);
  bool button_at_end(const char* id, std::string_view label, const Tip& tip,
                     ButtonStyle style = ButtonStyle::kPlain);
  bool chip_button(const char* id, std::string_view text, const Tip& tip);
  bool chip_button_at_end(const char* id, std::string_view text, const Tip& tip);
  void chip(std::string_view text, Rgba colour);
  void text(const ImFont* font, Rgba colour, std::string_view text);
  // The text, cut in the middle if it does not fit.
  void elided_text_to_end(const ImFont* font, Rgba colour, std::string_view text);
  // An input of this width in pixels; 0: as wide as the rest of the line.
  bool field(const char* id, const char* hint, std::string& text, const Tip& tip, float width = 0,
             bool selects_all = false);

  bool fits(std::string_view label) const { return button_size(frame_, label).x <= room(); }
  float room() const { return end_ - x_; }
  // Width that is left for a field if a button with this label follows it.
  float room_next_to_button(std::string_view label) const {
    return room() - gap_ - button_size(frame_, label).x;
  }
  float x() const { return x_; }
  float end() const { return end_; }
  float top() const { return top_; }
  float middle() const { return top_ + height_ / 2; }
  void skip(float pixels) { x_ += pixels; }
  void shorten(float pixels) { end_ -= pixels; }
  // Begins another line, unless this one has room for `width` pixels; true if it did.
  bool make_room(float width);

 private:
  Frame& frame_;
  Column& column_;
  float height_, gap_, x_, end_, top_;
};

// A single-line input as wide as the column. True if Enter was pressed.
bool field(Frame& frame, Column& column, const char* id, const char* hint, std::string& text,
           const Tip& tip, Gap below = Gap::kSmall);
// A titled input that is explained below it and in its tooltip.
bool explained_field(Frame& frame, Column& column, const char* id, const char* title,
                     const char* hint, const char* what, std::string& text);

// A line of underlined text that can be clicked.
bool link_line(Frame& frame, Column& column, const char* id, std::string_view text, const Tip& tip,
               Gap below = Gap::kNone);

// The last line of a panel: "Close" at its right end.
bool close_button(Line& line, const char* id);

}  // namespace shw
