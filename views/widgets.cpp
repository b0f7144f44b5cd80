#include "views/widgets.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>

#include "views/imgui_versions.h"
#include "views/shown_text.h"
#include "views/text.h"

namespace shw {
namespace {

const char* begin_of(std::string_view text) {
  return text.data();
}
const char* end_of(std::string_view text) {
  return text.data() + text.size();
}

// Receives the texts of this frame; thread-local, because text functions only get a draw list.
thread_local Marks* noted = nullptr;
thread_local int noted_layer = 0;

void note(ImDrawList* draw, const ImFont* font, float x, float y, Rgba colour,
          std::string_view text) {
  if (noted == nullptr || !noted->wants_texts) return;
  ImVec2 min = draw->GetClipRectMin(), max = draw->GetClipRectMax();
  noted->texts.push_back({{x, y, x + text_width(font, text), y + text_height(font)},
                          {min.x, min.y, max.x, max.y},
                          ImGui::GetScrollMaxY() > 0,
                          noted_layer,
                          std::string(text),
                          draw,
                          draw->IdxBuffer.Size,
                          draw->IdxBuffer.Size,
                          colour,
                          text_width(font, "i") == text_width(font, "m")});
}
// Call after the text was drawn.
void note_end(const ImDrawList* draw) {
  if (noted == nullptr || !noted->wants_texts) return;
  noted->texts.back().last_index = draw->IdxBuffer.Size;
}

}  // namespace

Measure measure_with(const ImFont* font) {
  return [font](std::string_view text) { return text_width(font, text); };
}

float text_width(const ImFont* font, std::string_view text) {
  if (text.empty()) return 0;  // imgui treats a null begin as a C string
  std::string buffer;
  text = shown_text(font, text, buffer);
  return face(font)->CalcTextSizeA(font_size(font), FLT_MAX, 0, begin_of(text), end_of(text)).x;
}

float text_height(const ImFont* font) {
  return font_size(font);
}

void draw_text(ImDrawList* draw, const ImFont* font, float x, float y, Rgba colour,
               std::string_view text) {
  if (text.empty()) return;
  std::string buffer;
  text = shown_text(font, text, buffer);
  note(draw, font, std::floor(x), std::floor(y), colour, text);
  draw->AddText(face(font), font_size(font), {std::floor(x), std::floor(y)}, colour, begin_of(text),
                end_of(text));
  note_end(draw);
}

float text_from(ImDrawList* draw, const ImFont* font, float x, float middle, Rgba colour,
                std::string_view text) {
  draw_text(draw, font, x, middle - font_size(font) / 2, colour, text);
  return text_width(font, text);
}

float draw_text_ending_at(ImDrawList* draw, const ImFont* font, float right, float middle,
                          Rgba colour, std::string_view text) {
  float width = text_width(font, text);
  draw_text(draw, font, right - width, middle - font_size(font) / 2, colour, text);
  return width;
}

void head(Frame& frame, Column& column, std::string_view text, std::string_view more) {
  const ImFont* font = frame.fonts.head;
  float x = column.left;
  for (std::size_t at = 0; at < text.size();) {  // letter spacing for small capitals
    std::size_t next = at + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0u) == 0x80u) ++next;
    std::string_view letter = text.substr(at, next - at);
    draw_text(column.draw, font, x, column.y, frame.theme.head, letter);
    x += text_width(font, letter) + frame.px(0.8f);
    at = next;
  }
  if (!more.empty())
    draw_text(column.draw, font, x + frame.px(8), column.y, frame.theme.head, more);
  column.y += font_size(font) + frame.px(8);
}

namespace {

// The last space in a line, or `end` if it has none.
const char* last_space(const char* at, const char* end) {
  const char* space = end;
  while (space > at && *space != ' ' && *space != '\n') --space;
  return space > at ? space : end;
}

// imgui would break after the dot of "2.14", and between the dots of "...", one per line, if the
// next word is too long.
const char* line_end(const ImFont* font, const char* at, const char* last, float width) {
  const auto is_mark = [](char c) { return c == '.' || c == ','; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const char* end = wrap_position(font, at, last, width);
  if (end - at > 1 && end < last && is_digit(end[-2]) && is_mark(end[-1]) && is_digit(*end))
    return last_space(at, end);
  if (end == at || end == last || !is_mark(end[-1]) || !is_mark(*end)) return end;
  const auto fits = [&](const char* to) {
    return text_width(font, {at, static_cast<std::size_t>(to - at)}) <= width;
  };
  while (end < last && *end != '\n' && fits(end + 1)) ++end;
  if (const char* space = last_space(at, end); end < last && space < end) return space;
  while (end < last && end > at && (static_cast<unsigned char>(*end) & 0xC0u) == 0x80u) --end;
  return end;
}

}  // namespace

void paragraph(Frame& frame, Column& column, const ImFont* font, Rgba colour, std::string_view text,
               Gap below) {
  std::string words, buffer;
  if (text.find_first_of("`[") != text.npos) {
    words = desktop_text(text);
    text = words;
  }
  text = shown_text(font, text, buffer, /*keeps_lines=*/true);
  float step = std::floor(font_size(font) * 1.2f);
  const char *at = begin_of(text), *last = end_of(text);
  while (at < last) {
    const char* end = line_end(font, at, last, column.width());
    if (end == at) ++end;  // at least one character, however narrow the column
    draw_text(column.draw, font, column.left, column.y, colour,
              {at, static_cast<std::size_t>(end - at)});
    column.y += step;
    at = end;
    while (at < last && (*at == ' ' || *at == '\n')) ++at;
  }
  gap(frame, column, below);
}

void body(Frame& frame, Column& column, std::string_view text, Gap below) {
  paragraph(frame, column, frame.fonts.text, frame.theme.text, text, below);
}

void caption(Frame& frame, Column& column, std::string_view text, Gap below) {
  paragraph(frame, column, frame.fonts.small, frame.theme.quiet, text, below);
}

void signed_paragraph(Frame& frame, Column& column, Sign sign, Rgba colour, std::string_view text,
                      Gap below) {
  draw_sign(frame, column.draw, {column.left + frame.px(8), column.y + frame.px(8)}, frame.px(7),
            sign);
  Column inside = indented(frame, column, 24);
  paragraph(frame, inside, frame.fonts.small, colour, text, below);
  column.y = inside.y;
}

void text_line(Frame& frame, Column& column, const ImFont* font, Rgba colour, std::string_view text,
               Gap below) {
  text_from(column.draw, font, column.left, column.take(frame.px(18)) + frame.px(9), colour,
            elide_middle(text, column.width(), measure_with(font)));
  gap(frame, column, below);
}

float pixels(const Frame& frame, Gap gap) {
  return frame.px(static_cast<float>(gap));
}

void gap(const Frame& frame, Column& column, Gap size) {
  column.y += pixels(frame, size);
}

Column indented(const Frame& frame, Column column, float units) {
  column.left += frame.px(units);
  return column;
}

void row(Frame& frame, Column& column, std::string_view label, std::string_view value,
         Rgba colour) {
  float height = frame.px(24), middle = column.y + height / 2;
  float used =
      text_from(column.draw, frame.fonts.mono_small, column.left, middle, frame.theme.quiet, label);
  float room = column.width() - used - frame.px(16);
  // Sentences are drawn below their label; paths and numbers are elided.
  bool words = value.find(' ') != value.npos;
  if (words && text_width(frame.fonts.mono_small, value) > room) {
    column.y += height - frame.px(2);
    Column inside{column.draw, column.left + frame.px(12), column.right, column.y};
    paragraph(frame, inside, frame.fonts.mono_small, colour, value);
    column.y = inside.y + frame.px(6);
    return;
  }
  // After a long label the value gets its own line.
  if (room < frame.px(60) && text_width(frame.fonts.mono_small, value) > room) {
    column.y += height;
    middle += height;
    room = column.width() - frame.px(12);
  }
  std::string shown = elide_middle(value, room, measure_with(frame.fonts.mono_small));
  draw_text_ending_at(column.draw, frame.fonts.mono_small, column.right, middle, colour, shown);
  if (shown != value &&
      ImGui::IsMouseHoveringRect({column.left, column.y}, {column.right, column.y + height}))
    tooltip(frame, value);
  column.y += height;
}

float extents_width(const ImFont* font, ExtentsView value) {
  return text_width(font, to_text(value));
}

void draw_extents(Frame& frame, ImDrawList* draw, const ImFont* font, float x, float middle,
                  ExtentsView value, ExtentsView other, Rgba colour, Rgba wrong) {
  x += text_from(draw, font, x, middle, colour, "[");
  for (std::size_t d = 0; d < value.size(); ++d) {
    bool differs = !other.empty() && (value.size() != other.size() || other[d] != value[d]);
    std::string number = std::to_string(value[d]);
    x += text_from(draw, font, x, middle, differs ? wrong : colour, number);
    if (d + 1 < value.size()) x += text_from(draw, font, x, middle, colour, ", ");
  }
  text_from(draw, font, x, middle, colour, "]");
  (void)frame;
}

void row_extents(Frame& frame, Column& column, std::string_view label, ExtentsView value,
                 ExtentsView other, Rgba wrong) {
  float height = frame.px(24), middle = column.y + height / 2;
  const ImFont* font = frame.fonts.mono_small;
  float used = text_from(column.draw, font, column.left, middle, frame.theme.quiet, label);
  float width = extents_width(font, value);
  if (width > column.width() - used - frame.px(16))
    return row(frame, column, label, to_text(value), frame.theme.text);
  draw_extents(frame, column.draw, font, column.right - width, middle, value, other,
               frame.theme.text, wrong);
  column.y += height;
}

float chip_width(const Frame& frame, std::string_view text) {
  return std::floor(text_width(frame.fonts.small, text)) + frame.px(16);
}

float chip(Frame& frame, ImDrawList* draw, float x, float middle, std::string_view text,
           Rgba colour) {
  float width = chip_width(frame, text);
  float half = frame.px(11);
  ImVec2 min{x, middle - half}, max{x + width, middle + half};
  draw->AddRectFilled(min, max, frame.theme.raised, frame.px(4));
  draw->AddRect(min, max, colour == frame.theme.text ? frame.theme.strong_line : colour,
                frame.px(4));
  text_from(draw, frame.fonts.small, x + frame.px(8), middle, colour, text);
  return width;
}

void tooltip(Frame& frame, std::string_view text) {
  push_font(frame.fonts.small);
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(frame.px(520));
  std::string buffer;
  text = shown_text(frame.fonts.small, text, buffer, /*keeps_lines=*/true);
  ImGui::TextUnformatted(begin_of(text), end_of(text));
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
  ImGui::PopFont();
}

Sign sign_of(Tone tone) {
  switch (tone) {
    case Tone::kOk:
      return Sign::kOk;
    case Tone::kBad:
      return Sign::kBad;
    case Tone::kWarn:
      return Sign::kWarn;
    case Tone::kUnknown:
      return Sign::kUnknown;
    case Tone::kQuiet:
      break;
  }
  return Sign::kQuiet;
}

void draw_sign(Frame& frame, ImDrawList* draw, ImVec2 middle, float radius, Sign sign) {
  const Theme& theme = frame.theme;
  float thick = std::max(1.0f, radius * 0.22f);
  auto line = [&](float ax, float ay, float bx, float by, Rgba colour) {
    draw->AddLine({middle.x + ax * radius, middle.y + ay * radius},
                  {middle.x + bx * radius, middle.y + by * radius}, colour, thick);
  };
  auto on = [&](Rgba fill) { return readable_on(fill, theme.dark_ink, theme.light_ink); };
  switch (sign) {
    case Sign::kBad:
      draw->AddCircleFilled(middle, radius, theme.bad);
      line(0, -0.55f, 0, 0.15f, theme.bad_text);
      draw->AddCircleFilled({middle.x, middle.y + radius * 0.48f}, thick * 0.62f, theme.bad_text);
      return;
    case Sign::kWarn:
      draw->AddTriangleFilled({middle.x, middle.y - radius},
                              {middle.x + radius, middle.y + radius * 0.85f},
                              {middle.x - radius, middle.y + radius * 0.85f}, theme.warn);
      line(0, -0.4f, 0, 0.25f, on(theme.warn));
      draw->AddCircleFilled({middle.x, middle.y + radius * 0.55f}, thick * 0.6f, on(theme.warn));
      return;
    case Sign::kOk:
      draw->AddCircleFilled(middle, radius, theme.ok);
      line(-0.45f, 0.02f, -0.1f, 0.38f, on(theme.ok));
      line(-0.12f, 0.38f, 0.48f, -0.32f, on(theme.ok));
      return;
    case Sign::kUnknown:
      draw->AddCircle(middle, radius - thick / 2, theme.unknown, 0, thick);
      text_from(draw, frame.fonts.strong, middle.x - text_width(frame.fonts.strong, "?") / 2,
                middle.y, theme.unknown, "?");
      return;
    case Sign::kQuiet:
      draw->AddCircle(middle, radius - thick / 2, theme.quiet, 0, thick);
      return;
  }
}

void record_texts(Marks* marks) {
  noted = marks;
  noted_layer = 0;
}

void text_layer(const Frame&, int layer) {
  noted_layer = layer;
}

void mark(Frame& frame, std::string_view name) {
  if (frame.marks == nullptr) return;
  ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
  frame.marks->items[std::string(name)] = {min.x, min.y, max.x, max.y};
}

bool has_ring(const Frame& frame) {
  // imgui hides its focus mark once a text input has become active.
  const bool by_tab = frame.tabs != nullptr && frame.tabs->is_focused_by_tab();
  return ImGui::IsItemFocused() && (ImGui::GetIO().NavVisible || by_tab);
}

void focus_ring(Frame& frame, ImDrawList* draw) {
  if (!has_ring(frame)) return;
  if (frame.marks != nullptr) frame.marks->has_ring = true;
  ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
  float out = frame.px(2);
  add_frame(draw, {min.x - out, min.y - out}, {max.x + out, max.y + out}, frame.theme.frame,
            frame.px(6), frame.px(2));
}

bool begin_region(Frame& frame, const char* id, Region region, Rgba background, bool scrolls) {
  ImGui::SetCursorScreenPos(region.min);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, background);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2{0, 0});
  ImGuiWindowFlags flags = ImGuiWindowFlags_None;
  if (!scrolls) flags = ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse;
  bool open =
      begin_flat_child(id, {region.max.x - region.min.x, region.max.y - region.min.y}, flags);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  (void)frame;
  // imgui draws the background of a child in its parent where the child before it is elsewhere:
  // a column that opens over the map would be transparent.
  if (open) ImGui::GetWindowDrawList()->AddRectFilled(region.min, region.max, background);
  return open;
}

void end_region() {
  ImGui::EndChild();
}

void close_column(Frame& frame, const Column& column) {
  ImGui::SetCursorScreenPos({column.left, column.y + frame.px(12)});
  ImGui::Dummy({1, 1});
}

}  // namespace shw
