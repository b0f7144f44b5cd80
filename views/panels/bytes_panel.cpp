// Hex view of a file: 16 bytes per row with the bounds of records, their owners and decoded
// values.
#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>
#include <array>
#include <span>

#include "core/verbs/values/bytes_search.h"
#include "views/actions.h"
#include "views/imgui_versions.h"
#include "views/line.h"
#include "views/panels/bytes_parts.h"
#include "views/panels/content_panels.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

using verbs::BytesWindow;
using verbs::kBytesPerRow;
using Go = BytesCommand::Go;

const BytePart* part_at(std::span<const BytePart> parts, std::uint64_t at) {
  auto after = std::upper_bound(parts.begin(), parts.end(), at,
                                [](std::uint64_t a, const BytePart& p) { return a < p.first; });
  if (after == parts.begin()) return nullptr;
  const BytePart& part = *std::prev(after);
  return at < part.last ? &part : nullptr;
}

std::string hex(std::uint64_t value) {
  return fmt::format("0x{:X}", value);
}

// Positions of the columns of a row.
struct HexGrid {
  float left = 0, right = 0, top = 0, line = 0;
  float decimal = 0;  // 0: hidden
  float bytes = 0, cell = 0, letters = 0, letter = 0, gutter = 0;
  std::size_t rows = 0;
  float byte_x(std::uint64_t in_row) const {
    return bytes + cell * static_cast<float>(in_row) + (in_row >= 8 ? cell / 3 : 0);
  }
};

HexGrid grid_of(const Frame& frame, Region region, float top) {
  HexGrid grid;
  grid.left = region.min.x + frame.px(16);
  grid.right = region.max.x - frame.px(16);
  grid.top = top;
  grid.line = frame.px(19);
  grid.letter = text_width(frame.fonts.mono_small, "0");
  grid.cell = grid.letter * 2 + frame.px(6);
  float x = grid.left + grid.letter * 11 + frame.px(10);
  if (region.max.x - region.min.x >= frame.px(900)) {
    grid.decimal = x + grid.letter * 13;
    x = grid.decimal + frame.px(14);
  }
  grid.bytes = x;
  grid.letters = grid.byte_x(kBytesPerRow) + frame.px(10);
  grid.gutter = grid.letters + grid.letter * 16 + frame.px(14);
  grid.rows =
      static_cast<std::size_t>(std::max(1.0f, (region.max.y - frame.px(12) - top) / grid.line));
  return grid;
}

// Background of a run of bytes of one part within a row, with edges where the part begins or ends.
void draw_part_background(Frame& frame, ImDrawList* draw, const HexGrid& grid,
                          const BytesWindow& window, std::uint64_t row, float y) {
  std::uint64_t end =
      std::min<std::uint64_t>(row + kBytesPerRow, window.first + window.bytes.size());
  for (std::uint64_t at = row; at < end;) {
    const BytePart* part = part_at(window.parts, at);
    std::uint64_t until = part ? std::min(part->last, end) : at + 1;
    if (part != nullptr) {
      Rgba colour = part_colour(frame.theme, part->kind);
      float x0 = grid.byte_x(at - row) - frame.px(3),
            x1 = grid.byte_x(until - 1 - row) + grid.cell - frame.px(3);
      draw->AddRectFilled({x0, y}, {x1, y + grid.line}, mix(frame.theme.background, colour, 0.16f));
      if (part->first == at)
        draw->AddRectFilled({x0, y}, {x0 + frame.px(2), y + grid.line}, colour);
      if (part->last == until)
        draw->AddRectFilled({x1 - frame.px(1), y}, {x1, y + grid.line}, colour);
    }
    at = until;
  }
}

// The margin of a row: the name of a part that begins there, else its values.
void draw_gutter(Frame& frame, ImDrawList* draw, const HexGrid& grid, const BytesWindow& window,
                 std::uint64_t row, float y) {
  const ImFont* font = frame.fonts.mono_small;
  float x = grid.gutter, middle = y + grid.line / 2, room = grid.right - x;
  if (room < frame.px(40)) return;
  const Measure measure = measure_with(font);
  for (const BytePart& part : window.parts) {
    bool begins = part.first >= row && part.first < row + kBytesPerRow;
    bool comes_in = row == window.first && part.first < row && part.last > row;
    if (!begins && !comes_in) continue;
    if (x > grid.left + 1 && x > grid.gutter)
      x += text_from(draw, font, x, middle, frame.theme.quiet, " · ");
    std::string name = (comes_in ? "… " : "") + part.name;
    if (grid.right - x < frame.px(30)) return;
    x += text_from(draw, font, x, middle, part_colour(frame.theme, part.kind),
                   elide_middle(name, grid.right - x, measure));
  }
  if (x > grid.gutter) return;
  std::string values;
  for (std::uint64_t at = row; at < row + kBytesPerRow; ++at) {
    std::string value = verbs::value_at(window, at);
    if (value.empty()) continue;
    std::string longer = values + (values.empty() ? "" : "  ") + value;
    if (measure(longer) > room) break;
    values = std::move(longer);
  }
  text_from(draw, font, x, middle, frame.theme.text, values);
}

void draw_row(Frame& frame, ImDrawList* draw, const HexGrid& grid, const BytesWindow& window,
              std::uint64_t row, std::size_t line, std::optional<std::uint64_t> chosen,
              bool has_structure) {
  const ImFont* font = frame.fonts.mono_small;
  float y = grid.top + grid.line * static_cast<float>(line), middle = y + grid.line / 2;
  text_from(draw, font, grid.left, middle, frame.theme.quiet, fmt::format("0x{:08X}", row));
  if (grid.decimal > 0)
    draw_text_ending_at(draw, font, grid.decimal, middle, frame.theme.head, human_count(row));
  draw_part_background(frame, draw, grid, window, row, y);
  std::array<char, 2> digits{};
  std::string letters;
  std::uint64_t end =
      std::min<std::uint64_t>(row + kBytesPerRow, window.first + window.bytes.size());
  for (std::uint64_t at = row; at < end; ++at) {
    auto byte = std::to_integer<unsigned>(window.bytes[at - window.first]);
    constexpr std::string_view kDigits = "0123456789abcdef";
    digits = {kDigits[byte >> 4], kDigits[byte & 15]};
    float x = grid.byte_x(at - row);
    if (chosen == at)
      add_frame(draw, {x - frame.px(3), y}, {x + grid.cell - frame.px(3), y + grid.line},
                frame.theme.frame, 0, frame.px(2));
    text_from(draw, font, x, middle, byte == 0 ? frame.theme.head : frame.theme.text,
              {digits.data(), 2});
    letters += byte >= 0x20 && byte < 0x7F ? static_cast<char>(byte) : '.';
  }
  text_from(draw, font, grid.letters, middle, frame.theme.quiet, letters);
  if (!has_structure) draw_gutter(frame, draw, grid, window, row, y);
}

std::string part_text(const BytePart& part) {
  return fmt::format("{}, {} to {}", part.name, hex(part.first),
                     hex(std::max(part.first, part.last - 1)));
}

// One mouse area for all bytes: the wheel scrolls, a click selects.
void handle_mouse_on_bytes(Frame& frame, UiState& state, const HexGrid& grid,
                           const BytesWindow& window) {
  float width = grid.letters + grid.letter * 16 - grid.bytes;
  ImGui::SetCursorScreenPos({grid.bytes, grid.top});
  const bool clicked =
      picture_control(frame, "bytes/grid", {width, grid.line * static_cast<float>(grid.rows)});
  focus_ring(frame, ImGui::GetWindowDrawList());
  if (!mouse_is_over()) return;
  ImVec2 mouse = ImGui::GetMousePos();
  auto row = static_cast<std::uint64_t>(std::max(0.0f, (mouse.y - grid.top) / grid.line));
  std::optional<std::uint64_t> under;
  for (std::uint64_t b = 0; b < kBytesPerRow; ++b) {
    bool here = mouse.x >= grid.byte_x(b) - frame.px(3) &&
                mouse.x < grid.byte_x(b) + grid.cell - frame.px(3);
    float letter = grid.letters + grid.letter * static_cast<float>(b);
    here = here || (mouse.x >= letter && mouse.x < letter + grid.letter);
    if (here) under = window.first + row * kBytesPerRow + b;
  }
  if (!under || *under >= window.first + window.bytes.size()) return;
  if (clicked) {
    state.bytes.chosen = under;
    state.map_has_keys = true;
  }
  const BytePart* part = part_at(window.parts, *under);
  if (frame.stable) return;
  std::string index = verbs::index_at(window, *under), value = verbs::value_at(window, *under);
  std::string text = fmt::format("byte {} = {}", human_count(*under), hex(*under));
  if (part != nullptr) text += "\n" + part_text(*part);
  if (!value.empty()) text += "\n" + index + (index.empty() ? "" : " = ") + value;
  tooltip(frame, text);
}

void scroll_by_rows(Frame& frame, const BytesWindow& window, std::int64_t rows) {
  auto first = static_cast<std::int64_t>(window.first / kBytesPerRow) + rows;
  auto last = static_cast<std::int64_t>(window.file_size / kBytesPerRow);
  std::uint64_t at =
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(first, 0, last)) * kBytesPerRow;
  if (at != window.first) frame.emit(BytesCommand{Go::kAt, window.path, at});
}

void scroll(Frame& frame, UiState& state, const BytesWindow& window) {
  if (ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows) && ImGui::GetIO().MouseWheel != 0)
    scroll_by_rows(frame, window, static_cast<std::int64_t>(-ImGui::GetIO().MouseWheel * 3));
  if (!state.map_has_keys || is_covered(state) || ImGui::GetIO().WantTextInput) return;
  auto page = static_cast<std::int64_t>(std::max<std::size_t>(2, state.bytes.rows)) - 1;
  for (KeyPress key : frame.keys) {
    if (key.ctrl || key.alt) continue;
    if (key.key == Key::kDown) scroll_by_rows(frame, window, 1);
    if (key.key == Key::kUp) scroll_by_rows(frame, window, -1);
    if (key.key == Key::kPageDown) scroll_by_rows(frame, window, page);
    if (key.key == Key::kPageUp) scroll_by_rows(frame, window, -page);
  }
}

// As recorded; may be negative.
std::string grouped(std::int64_t number) {
  return number < 0 ? std::to_string(number) : human_count(static_cast<std::uint64_t>(number));
}

void draw_record(Frame& frame, Column& column, const BytesWindow& window) {
  std::string record = "in no record of the index";
  if (window.record) record = window.record->name;
  std::string size = window.path + ", " + human_bytes(window.file_size);
  text_line(frame, column, frame.fonts.mono_small, frame.theme.text, record, Gap::kTight);
  if (window.record) {
    const ItemPlace& place = window.record->place;
    size += fmt::format("; recorded at byte {}, {} bytes", grouped(place.offset),
                        grouped(place.length));
  }
  text_line(frame, column, frame.fonts.mono_small, frame.theme.quiet, size, Gap::kTight);
  for (const std::string& wrong : window.wrong)
    paragraph(frame, column, frame.fonts.small, frame.theme.bad, wrong);
}

// "u8 80, u16 19280, ...": little-endian, only widths that fit in the bytes.
std::string whole_numbers(BytesView bytes) {
  std::string text;
  for (std::size_t width = 1; width <= std::min<std::size_t>(8, bytes.size()); width *= 2) {
    std::uint64_t number = 0;
    for (std::size_t b = width; b-- > 0;)
      number = number << 8 | std::to_integer<std::uint64_t>(bytes[b]);
    text += fmt::format("{}u{} {}", text.empty() ? "" : ", ", 8 * width, number);
  }
  return text;
}

// The value that begins at the selected byte, in the chunk's dtype and as integers.
void draw_value(Frame& frame, Column& column, const BytesWindow& window, std::uint64_t at) {
  std::string value = verbs::value_at(window, at), index = verbs::index_at(window, at);
  std::string text = fmt::format("byte {} = {}", human_count(at), hex(at));
  if (const BytePart* part = part_at(window.parts, at))
    text += fmt::format(", byte {} of {}", human_count(at - part->first), part->name);
  text += "   as " + whole_numbers(BytesView(window.bytes).subspan(at - window.first));
  text_line(frame, column, frame.fonts.mono_small, frame.theme.quiet, text, Gap::kTight);
  std::string order = window.big_endian ? "big-endian" : "little-endian";
  std::string values;
  if (!window.no_values.empty())
    values = window.no_values;
  else if (window.values_first == window.values_last)
    values = "no tensor: no values";
  else if (value.empty())
    values = fmt::format("{}, {}: elements of {} bytes from {} on", name(window.dtype), order,
                         size_of(window.dtype), hex(window.values_first));
  else
    values = fmt::format("{}, {}: {}{}", name(window.dtype), order,
                         index.empty() ? "" : index + " = ", value);
  text_line(frame, column, frame.fonts.mono_small, frame.theme.text, values, Gap::kSmall);
}

void draw_bytes_buttons(Frame& frame, UiState& state, Column& column, const BytesWindow* window) {
  Line line(frame, column, 30, Gap::kMedium);
  line.text(frame.fonts.title, frame.theme.text, "Bytes");
  if (line.button_at_end("bytes/close", "Close", "Closes the bytes and shows the map.  (Esc)"))
    close_viewers(frame, state);
  struct {
    const char *id, *label;
    Action action;
    bool there;
  } buttons[] = {
      {"bytes/copy", "Copy", Action::kCopyBytes, window != nullptr},
      {"bytes/next", "Next record", Action::kNextRecord, window && window->next},
      {"bytes/previous", "Previous", Action::kPreviousRecord, window && window->previous}};
  if (window != nullptr && window->values_first < window->values_last &&
      line.button_at_end("bytes/payload", "Payload", "Goes to the first byte of the values."))
    frame.emit(BytesCommand{Go::kAt, window->path, window->values_first});
  if (window != nullptr && window->record && !window->all.empty() &&
      line.button_at_end("bytes/structure", state.bytes.structure_open ? "Values" : "Structure",
                         "Shows the parts of the record next to the bytes, or their values."))
    state.bytes.structure_open = !state.bytes.structure_open;
  for (auto& b : buttons) {
    if (b.there && line.button_at_end(b.id, b.label, b.action)) run(b.action, frame, state);
  }
  const float wide = std::min(frame.px(300), line.room());
  if (wide > frame.px(60) &&
      line.field("bytes/jump", "offset, +64, \"text\", /50 4b, =1.5", state.bytes.jump,
                 "Goes to a byte: decimal, 0x for hexadecimal, + or - from the chosen one. Looks "
                 "for \"text\", for bytes after /, for a number after =; Enter again goes on.",
                 wide, true) &&
      window != nullptr) {
    std::uint64_t from = state.bytes.chosen.value_or(window->at);
    if (verbs::is_byte_pattern(state.bytes.jump))
      frame.emit(BytesCommand{Go::kFind, {}, 0, state.bytes.jump});
    else if (auto at = verbs::parse_offset(state.bytes.jump, from))
      frame.emit(BytesCommand{Go::kAt, window->path, *at});
  }
}

// Shows the bytes of a newly selected tile.
void follow_selection(Frame& frame, UiState& state) {
  BytesState& bytes = state.bytes;
  bool same =
      bytes.followed == frame.snapshot.tensor && bytes.followed_tile == frame.snapshot.chunk;
  bool first = !bytes.followed && !bytes.followed_tile;
  if (!same && !first && frame.job.looking) return;  // asked for when that is done
  bytes.followed = frame.snapshot.tensor;
  bytes.followed_tile = frame.snapshot.chunk;
  if (!same && !first) frame.emit(BytesCommand{Go::kTile});
}

}  // namespace

void show_bytes(Frame& frame, UiState& state, bool of_finding) {
  if (state.values.open || frame.snapshot.values != nullptr) {
    frame.emit(ValuesCommand{true});
    state.values.open = false;
  }
  auto tile = current_tile(frame, state);
  if (!of_finding && tile && tile != frame.snapshot.chunk) frame.emit(SelectChunkCommand{tile});
  frame.emit(BytesCommand{of_finding ? Go::kFinding : Go::kTile});
  state.bytes.open = state.map_has_keys = true;
  state.bytes.followed.reset();
  state.bytes.followed_tile.reset();
}

void copy_bytes(Frame& frame, UiState& state) {
  const ShownBytes* look = frame.snapshot.bytes.get();
  if (look == nullptr || !look->window) return;
  std::uint64_t first = look->window->first;
  std::string text = verbs::hex_text(*look->window, first, first + state.bytes.rows * kBytesPerRow);
  ImGui::SetClipboardText((look->window->path + "\n" + text).c_str());
  state.toast = "Copied " + plural(state.bytes.rows, "row") + " as text.";
  state.toast_until = frame.now + 4;
}

void draw_bytes(Frame& frame, UiState& state, Region region) {
  begin_region(frame, "bytes", region, frame.theme.background, false);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  Column column{draw, region.min.x + frame.px(16), region.max.x - frame.px(16),
                region.min.y + frame.px(12)};
  std::shared_ptr<const ShownBytes> look = frame.snapshot.bytes;
  const BytesWindow* window = look != nullptr && look->window ? &*look->window : nullptr;
  draw_bytes_buttons(frame, state, column, window);
  if (look != nullptr && state.bytes.of.lock() != look) {
    state.bytes.of = look;
    state.bytes.chosen = window ? std::optional(window->at) : std::nullopt;
  }
  if (look != nullptr) follow_selection(frame, state);
  if (window == nullptr) {
    bool failed = look != nullptr && look->error;
    std::string text = failed ? look->error->message : "Reading…";
    if (failed && !look->error->place.file.empty()) text = look->error->place.file + ": " + text;
    paragraph(frame, column, frame.fonts.text, failed ? frame.theme.bad : frame.theme.quiet, text);
    end_region();
    return;
  }
  draw_record(frame, column, *window);
  std::uint64_t chosen = state.bytes.chosen.value_or(window->at);
  bool inside = chosen >= window->first && chosen - window->first < window->bytes.size();
  if (inside) draw_value(frame, column, *window, chosen);
  HexGrid grid = grid_of(frame, region, column.y + frame.px(4));
  state.bytes.rows = grid.rows;
  for (std::size_t line = 0; line < grid.rows; ++line) {
    std::uint64_t row = window->first + line * kBytesPerRow;
    if (row >= window->first + window->bytes.size()) break;
    draw_row(frame, draw, grid, *window, row, line, state.bytes.chosen, state.bytes.structure_open);
  }
  if (state.bytes.structure_open && grid.right - grid.gutter > frame.px(120))
    draw_structure(frame, {draw, grid.gutter, grid.right, grid.top}, *window, chosen,
                   region.max.y - frame.px(12));
  handle_mouse_on_bytes(frame, state, grid, *window);
  scroll(frame, state, *window);
  end_region();
}

}  // namespace shw
