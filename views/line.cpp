#include "views/line.h"

#include "views/text.h"

namespace shw {
Line::Line(Frame& frame, Column& column, float height, Gap below)
    : frame_(frame),
      column_(column),
      height_(frame.px(height)),
      gap_(pixels(frame, Gap::kSmall)),
      x_(column.left),
      end_(column.right),
      top_(column.take(frame.px(height) + pixels(frame, below))) {}

bool Line::make_room(float width) {
  if (x_ <= column_.left || width <= room()) return false;
  x_ = column_.left;
  end_ = column_.right;
  top_ += height_ + gap_;
  column_.take(height_ + gap_);
  return true;
}

bool Line::button(const char* id, std::string_view label, const Tip& tip, ButtonStyle style) {
  const ImVec2 size = button_size(frame_, label);
  make_room(size.x);
  const float x = x_;
  skip(size.x + gap_);
  return shw::button(frame_, id, label, tip, {x, middle() - size.y / 2}, style);
}

bool Line::button_at_end(const char* id, std::string_view label, const Tip& tip,
                         ButtonStyle style) {
  const ImVec2 size = button_size(frame_, label);
  const float x = end_ - size.x;
  end_ = x - gap_;
  return shw::button(frame_, id, label, tip, {x, middle() - size.y / 2}, style);
}

bool Line::chip_button(const char* id, std::string_view text, const Tip& tip) {
  make_room(chip_width(frame_, text));
  float width = 0;
  const bool clicked = shw::chip_button(frame_, id, x_, middle(), text, &width, tip);
  skip(width + gap_);
  return clicked;
}

bool Line::chip_button_at_end(const char* id, std::string_view text, const Tip& tip) {
  float width = chip_width(frame_, text);
  const float x = end_ - width;
  end_ = x - gap_;
  return shw::chip_button(frame_, id, x, middle(), text, &width, tip);
}

void Line::chip(std::string_view text, Rgba colour) {
  make_room(chip_width(frame_, text));
  skip(shw::chip(frame_, column_.draw, x_, middle(), text, colour) + gap_);
}

void Line::text(const ImFont* font, Rgba colour, std::string_view text) {
  skip(text_from(column_.draw, font, x_, middle(), colour, text) + gap_);
}

void Line::elided_text_to_end(const ImFont* font, Rgba colour, std::string_view text) {
  this->text(font, colour, elide_middle(text, room(), measure_with(font)));
}

bool Line::field(const char* id, const char* hint, std::string& text, const Tip& tip, float width,
                 bool selects_all) {
  const float x = x_;
  if (width == 0) width = room();
  skip(width + gap_);
  return text_field(frame_, column_.draw, id, hint, {x, top_}, {width, height_}, text, tip,
                    selects_all);
}

bool field(Frame& frame, Column& column, const char* id, const char* hint, std::string& text,
           const Tip& tip, Gap below) {
  return Line(frame, column, 34, below).field(id, hint, text, tip);
}

bool explained_field(Frame& frame, Column& column, const char* id, const char* title,
                     const char* hint, const char* what, std::string& text) {
  head(frame, column, title);
  const bool entered = field(frame, column, id, hint, text, what, Gap::kSmall);
  caption(frame, column, what, Gap::kMedium);
  return entered;
}

bool link_line(Frame& frame, Column& column, const char* id, std::string_view text, const Tip& tip,
               Gap below) {
  const float top = column.take(frame.px(22) + pixels(frame, below));
  return text_link(frame, id, text, tip, {column.left, top});
}

bool close_button(Line& line, const char* id) {
  return line.button_at_end(id, "Close", "Closes this panel.  (Esc)");
}

}  // namespace shw
