// The map of names between the open checkpoint and another program's: two columns of names, a line
// per row of the map, and its operations in between.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "core/report/text_words.h"
#include "views/actions.h"
#include "views/line.h"
#include "views/panels/content_panels.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

using verbs::PairedNames;
using verbs::PairedRow;
using verbs::PairedTensors;
using verbs::UnpairedTensor;

constexpr float kNameLine = 22, kRowPad = 14;
constexpr std::size_t kMaxTensorsShown = 24, kMaxUnpairedShown = 200;

// The two columns, and the room between them for lines and words.
struct MapSpans {
  float left = 0, left_end = 0, right = 0, right_end = 0;
  float middle() const { return std::floor((left_end + right) / 2); }
};
MapSpans map_spans(const Frame& frame, const Column& column) {
  const float between = std::clamp(column.width() * 0.2f, frame.px(96), frame.px(220));
  const float names = std::floor((column.width() - between) / 2);
  return {column.left, column.left + names, column.right - names, column.right};
}

std::string last_path_part(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.substr(path.find_last_of('/') + 1);
}

// Operations of a row in short, such as "join, stack": each sentence begins with its operation.
std::string operation_names_of_row(const PairedRow& row) {
  std::string text;
  for (const std::string& sentence : row.does) {
    std::string word = sentence.substr(0, sentence.find_first_of(" :"));
    if (!word.empty())
      word[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(word[0])));
    text += (text.empty() ? "" : ", ") + word;
  }
  return text.empty() ? "rename" : text;
}

// Name of a program as its users know it.
std::string program_display_name(const std::string& world) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kPrograms{
      {{"hf", "Hugging Face"},
       {"torch_dist", "Megatron-core"},
       {"titan", "torchtitan"},
       {"fsdp_dtensor", "Megatron-FSDP"}}};
  for (auto [name, program] : kPrograms) {
    if (name == world) return std::string(program);
  }
  return world;
}

std::string counts_text(const PairedNames& names) {
  std::size_t from = 0, to = 0;
  for (const PairedRow& row : names.rows) {
    from += row.from_count;
    to += row.to_count;
  }
  return fmt::format("{} of {} {} {} of {}, in {}.", plural(from, "tensor"),
                     program_display_name(names.from), from == 1 ? "is" : "are",
                     plural(to, "tensor"), program_display_name(names.to),
                     plural(names.rows.size(), "row"));
}

std::string map_origin_text(const PairedNames& names) {
  if (!names.proved)
    return "The map is " + names.map +
           ", chosen by the names. In braces are numbers, such as {l} of a layer.";
  return fmt::format(
      "The map was found in the elements: {} of {} of the other checkpoint are equal to the bit.",
      human_count(*names.proved), plural(names.tensors.value_or(0), "tensor"));
}

void draw_head(Frame& frame, UiState& state, Column& column, const PairedNames& names) {
  Line line(frame, column, 30, Gap::kMedium);
  line.text(frame.fonts.title, frame.theme.text, "Map of names");
  if (line.button_at_end("names/close", "Close", "Closes the map of names.  (Esc)"))
    state.names.open = false;
  body(frame, column, counts_text(names));
  caption(frame, column, map_origin_text(names), Gap::kMedium);
}

// Draws "HF  llama-3-hf" above each column, and marks the open checkpoint.
void draw_sides(Frame& frame, const Column& column, const MapSpans& spans,
                const PairedNames& names) {
  const std::string open = last_path_part(frame.snapshot.options.checkpoint);
  const std::string other = last_path_part(frame.snapshot.compared_with);
  const float middle = column.y + frame.px(10);
  const auto side = [&](float from, float to, const std::string& world, bool is_open) {
    const float x = from + text_from(column.draw, frame.fonts.strong, from, middle,
                                     frame.theme.text, program_display_name(world));
    const std::string more =
        (is_open ? "   open: " : "   other: ") + printable(is_open ? open : other);
    text_from(column.draw, frame.fonts.small, x, middle, frame.theme.quiet,
              elide_end(more, to - x, measure_with(frame.fonts.small)));
  };
  side(spans.left + frame.px(18), spans.left_end, names.from, names.is_first_from);
  side(spans.right, spans.right_end, names.to, !names.is_first_from);
}

float row_height(const Frame& frame, const PairedRow& row) {
  const std::size_t lines = std::max<std::size_t>({row.from.size(), row.to.size(), 1});
  return frame.px(kNameLine) * static_cast<float>(lines) + frame.px(kRowPad);
}

// The end of a name from a dot on; if that would be little more than "weight", both ends.
std::string shortened(std::string_view name, float width, const Measure& measure) {
  std::string text = elide_path(name, width, measure);
  return text.size() == name.size() || measure(text) > width / 2
             ? text
             : elide_middle(name, width, measure);
}

// A curve between a name and the text in the middle.
void draw_join(ImDrawList* draw, ImVec2 from, ImVec2 to, Rgba colour, float thick) {
  const float bend = (to.x - from.x) / 2;
  draw->AddBezierCubic(from, {from.x + bend, from.y}, {to.x - bend, to.y}, to, colour, thick);
}

// Draws the names of one side below one another; `ends` gets their positions.
void draw_names(Frame& frame, ImDrawList* draw, const std::vector<std::string>& names, float from,
                float to, float middle, bool is_right, Rgba colour, std::vector<ImVec2>& ends) {
  const ImFont* mono = frame.fonts.mono_small;
  Column lines{draw, from, to, middle - frame.px(kNameLine) * static_cast<float>(names.size()) / 2};
  for (const std::string& name : names) {
    const std::string text = shortened(name, to - from, measure_with(mono));
    const float line = lines.take(frame.px(kNameLine)) + frame.px(kNameLine) / 2;
    const float wide = text_from(draw, mono, from, line, colour, text);
    ends.push_back({is_right ? from - frame.px(8) : from + wide + frame.px(8), line});
  }
}

std::uint8_t mark_of_row(const NamesMapState& map, std::size_t i) {
  return i < map.marks.size() ? map.marks[i] : std::uint8_t{0};
}

Sign sign_of_row(const PairedRow& row, std::uint8_t mark) {
  if (row.different != 0 || mark == kErrorMark) return Sign::kBad;
  return row.missing != 0 || mark == kWarningMark ? Sign::kWarn : Sign::kQuiet;
}

std::string row_tip(const PairedRow& row) {
  std::string text;
  for (const std::string& fqn : row.from) text += (text.empty() ? "" : "\n") + fqn;
  for (const std::string& fqn : row.to) text += "\n" + fqn;
  if (row.different != 0) text += "\n" + plural(row.different, "tensor") + " of it differ.";
  if (row.missing != 0)
    text += "\n" + plural(row.missing, "tensor") + " that it makes " +
            (row.missing == 1 ? "is" : "are") + " not there.";
  return text + "\nShows its tensors, and what happens to them.";
}

void draw_map_row(Frame& frame, UiState& state, Column& column, const MapSpans& spans,
                  const PairedRow& row, std::size_t i) {
  const float height = row_height(frame, row), middle = column.y + height / 2;
  const bool is_chosen = state.names.row == i;
  ImGui::SetCursorScreenPos({column.left - frame.px(10), column.y});
  ImGui::PushID(static_cast<int>(i));
  const bool clicked = row_control(frame, "row", fmt::format("names/row/{}", i),
                                   {column.width() + frame.px(20), height}, is_chosen,
                                   Tip([&] { return row_tip(row); }));
  const bool lit = is_chosen || ImGui::IsItemHovered();
  if (lit)
    column.draw->AddRectFilled(ImGui::GetItemRectMin(), ImGui::GetItemRectMax(),
                               frame.theme.selected, frame.px(4));
  focus_ring(frame, column.draw);
  ImGui::PopID();
  if (clicked) state.names.row = is_chosen ? std::nullopt : std::optional(i);
  const Rgba colour = lit ? frame.theme.text : mix(frame.theme.quiet, frame.theme.text, 0.6f);
  std::vector<ImVec2> lefts, rights;
  draw_names(frame, column.draw, row.from, spans.left + frame.px(18), spans.left_end, middle, false,
             colour, lefts);
  draw_names(frame, column.draw, row.to, spans.right, spans.right_end, middle, true, colour,
             rights);
  const Sign sign = sign_of_row(row, mark_of_row(state.names, i));
  if (sign != Sign::kQuiet)
    draw_sign(frame, column.draw, {spans.left + frame.px(5), middle}, frame.px(6), sign);
  const ImFont* small = frame.fonts.small;
  const std::string words =
      elide_end(operation_names_of_row(row), spans.right - spans.left_end - frame.px(44),
                measure_with(small));
  const float half = text_width(small, words) / 2 + frame.px(6);
  const Rgba line = lit ? frame.theme.control : frame.theme.strong_line;
  for (ImVec2 end : lefts)
    draw_join(column.draw, end, {spans.middle() - half, middle}, line, frame.px(1.2f));
  for (ImVec2 end : rights)
    draw_join(column.draw, {spans.middle() + half, middle}, end, line, frame.px(1.2f));
  text_from(column.draw, small, spans.middle() - half + frame.px(6), middle,
            lit ? frame.theme.text : frame.theme.quiet, words);
  column.take(height);
}

std::string shapes_text(const std::vector<std::string>& shapes) {
  std::string text;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    text += (i == 0 ? "" : i + 1 == shapes.size() ? " and " : ", ") + shapes[i];
  return text;
}

// Draws a tensor's name; a click selects it if it belongs to the open checkpoint.
void draw_tensor_name(Frame& frame, UiState& state, ImDrawList* draw, const std::string& fqn,
                      const std::string& id, ImVec2 at, float to, bool is_open) {
  const ImFont* mono = frame.fonts.mono_small;
  const std::string text = shortened(fqn, to - at.x, measure_with(mono));
  const float middle = at.y + frame.px(kNameLine) / 2;
  const float wide = std::max(1.0f, text_width(mono, text));
  bool lit = false;
  if (is_open) {
    ImGui::SetCursorScreenPos(at);
    const bool clicked = control(frame, id, {wide, frame.px(kNameLine)},
                                 Tip([&] { return printable(fqn) + "\nGoes to the tensor."; }));
    focus_ring(frame, draw);
    lit = ImGui::IsItemHovered();
    if (clicked) {
      frame.emit(SelectTensorCommand{fqn});
      state.names.open = state.summary_open = state.table.open = false;
    }
  }
  text_from(draw, mono, at.x, middle, is_open ? frame.theme.text : frame.theme.quiet, text);
  if (is_open)
    draw->AddLine({at.x, middle + frame.px(9)}, {at.x + wide, middle + frame.px(9)},
                  lit ? frame.theme.text : frame.theme.line);
}

std::string more_text(std::size_t all, std::size_t shown) {
  return "and " + human_count(all - shown) + " more";
}

void draw_row_tensors(Frame& frame, UiState& state, Column& column, const MapSpans& spans,
                      const PairedNames& names, const PairedRow& row) {
  std::size_t shown = 0;
  const auto side = [&](const std::vector<std::string>& of, std::size_t number, float from,
                        float to, bool is_from) {
    const bool is_open = is_from == names.is_first_from;
    Column lines{column.draw, from, to, column.y};
    const std::size_t most = std::min(of.size(), kMaxTensorsShown);
    for (std::size_t i = 0; i < most; ++i) {
      draw_tensor_name(frame, state, column.draw, of[i],
                       fmt::format("names/{}/{}/{}", is_from ? "from" : "to", number, i),
                       {from, lines.take(frame.px(kNameLine))}, to, is_open);
    }
    if (most < of.size())
      text_line(frame, lines, frame.fonts.small, frame.theme.quiet, more_text(of.size(), most));
    return lines.y;
  };
  for (std::size_t i = 0; i < row.tensors.size() && shown < kMaxTensorsShown; ++i) {
    const PairedTensors& tensors = row.tensors[i];
    const float left = side(tensors.from, i, spans.left + frame.px(18), spans.left_end, true);
    const float right = side(tensors.to, i, spans.right, spans.right_end, false);
    shown += std::max(tensors.from.size(), tensors.to.size());
    column.y = std::max(left, right) + frame.px(4);
    if (shown < kMaxTensorsShown || i + 1 == row.tensors.size()) continue;
    text_from(column.draw, frame.fonts.small, spans.left + frame.px(18), column.y + frame.px(11),
              frame.theme.quiet, more_text(row.tensors.size(), i + 1) + " of this kind");
    column.take(frame.px(kNameLine));
  }
}

// Draws an unfolded row: its operations on the first tensors, and the names of all its tensors.
void draw_map_detail(Frame& frame, UiState& state, Column& column, const MapSpans& spans,
                     const PairedNames& names, const PairedRow& row) {
  Column inner{column.draw, spans.left + frame.px(18), column.right, column.y + frame.px(4)};
  paragraph(frame, inner, frame.fonts.mono_small, frame.theme.text,
            shapes_text(row.from_shapes) + "  →  " + shapes_text(row.to_shapes));
  if (row.does.empty())
    paragraph(frame, inner, frame.fonts.small, frame.theme.text,
              "The same elements under another name.");
  for (std::size_t i = 0; i < row.does.size(); ++i)
    paragraph(frame, inner, frame.fonts.small, frame.theme.text,
              (row.does.size() > 1 ? std::to_string(i + 1) + ". " : "") + row.does[i]);
  if (row.different != 0)
    paragraph(frame, inner, frame.fonts.small, frame.theme.bad,
              plural(row.different, "tensor") + (row.different == 1 ? " differs" : " differ") +
                  ". The comparison on the right says how.");
  if (row.missing != 0)
    paragraph(frame, inner, frame.fonts.small, frame.theme.warn,
              plural(row.missing, "tensor") + " that it makes " +
                  (row.missing == 1 ? "is" : "are") + " not there.");
  if (mark_of_row(state.names, state.names.row.value_or(0)) >= kWarningMark)
    paragraph(frame, inner, frame.fonts.small, frame.theme.bad,
              "A finding names a tensor of this row.");
  if (!row.doubt.empty()) paragraph(frame, inner, frame.fonts.small, frame.theme.warn, row.doubt);
  gap(frame, inner, Gap::kSmall);
  column.y = inner.y;
  draw_row_tensors(frame, state, column, spans, names, row);
  gap(frame, column, Gap::kMedium);
}

void draw_unpaired_side(Frame& frame, UiState& state, Column& column,
                        const std::vector<UnpairedTensor>& tensors, const std::string& world,
                        bool is_open) {
  head(frame, column, "WITHOUT A ROW", human_count(tensors.size()));
  if (tensors.empty()) caption(frame, column, "No tensor is left without a row.");
  const std::size_t shown = std::min(tensors.size(), kMaxUnpairedShown);
  for (std::size_t i = 0; i < shown; ++i) {
    draw_tensor_name(frame, state, column.draw, tensors[i].fqn,
                     fmt::format("names/only/{}/{}", world, i),
                     {column.left, column.take(frame.px(kNameLine))}, column.right, is_open);
    caption(frame, column, printable(tensors[i].why), Gap::kTight);
  }
  if (shown < tensors.size()) caption(frame, column, more_text(tensors.size(), shown));
}

void draw_unpaired(Frame& frame, UiState& state, Column& column, const MapSpans& spans,
                   const PairedNames& names) {
  Column left{column.draw, spans.left + frame.px(18), spans.left_end, column.y};
  Column right{column.draw, spans.right, spans.right_end, column.y};
  draw_unpaired_side(frame, state, left, names.only_from, names.from, names.is_first_from);
  draw_unpaired_side(frame, state, right, names.only_to, names.to, !names.is_first_from);
  column.y = std::max(left.y, right.y) + frame.px(12);
}

// Draws only the visible rows.
void draw_rows(Frame& frame, UiState& state, Column& column, const MapSpans& spans,
               const PairedNames& names) {
  const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowHeight();
  for (std::size_t i = 0; i < names.rows.size(); ++i) {
    const PairedRow& row = names.rows[i];
    const bool is_chosen = state.names.row == i;
    const float height = row_height(frame, row) + (is_chosen ? state.names.detail : 0);
    if (is_chosen && state.names.is_row_wanted) {
      ImGui::SetScrollFromPosY(column.y - top, 0.2f);
      state.names.is_row_wanted = false;
    }
    if (column.y > bottom || column.y + height < top) {
      column.take(height);
      continue;
    }
    draw_map_row(frame, state, column, spans, row, i);
    if (state.names.row != i || !is_chosen) continue;
    const float begin = column.y;
    draw_map_detail(frame, state, column, spans, names, row);
    state.names.detail = column.y - begin;
  }
}

}  // namespace

void draw_names_map(Frame& frame, UiState& state, Region region) {
  state.map.hovered.reset();  // the map is hidden
  const std::shared_ptr<const PairedNames> names = frame.snapshot.paired;
  begin_region(frame, "names", region, frame.theme.background, true);
  Column column{ImGui::GetWindowDrawList(), region.min.x + frame.px(24),
                region.max.x - frame.px(24), region.min.y + frame.px(12) - ImGui::GetScrollY()};
  draw_head(frame, state, column, *names);
  const MapSpans spans = map_spans(frame, column);
  draw_sides(frame, column, spans, *names);
  column.take(frame.px(28));
  draw_rows(frame, state, column, spans, *names);
  gap(frame, column, Gap::kLarge);
  draw_unpaired(frame, state, column, spans, *names);
  close_column(frame, column);
  end_region();
}

}  // namespace shw
