// The centre without a checkpoint: how to open one, or why opening
// failed.
#include <algorithm>

#include <imgui.h>

#include "core/verbs/known_formats.h"
#include "views/actions.h"
#include "views/line.h"
#include "views/panels/browser.h"
#include "views/panels/panels.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

Column middle_column(const Frame& frame, Region region, float width, float height) {
  float half = std::min(frame.px(width), region.max.x - region.min.x - frame.px(48)) / 2;
  float x = (region.min.x + region.max.x) / 2;
  float y = region.min.y +
            std::max(frame.px(24), (region.max.y - region.min.y - frame.px(height)) * 0.4f);
  return {ImGui::GetWindowDrawList(), std::floor(x - half), std::floor(x + half), std::floor(y)};
}

// A path input; true if it should be opened.
bool path_line(Frame& frame, UiState& state, Column& column) {
  // Focuses the field when the page appears.
  if (!state.welcome_shown && !is_covered(state)) ImGui::SetKeyboardFocusHere();
  state.welcome_shown = true;
  Line line(frame, column, 36, Gap::kMedium);
  const bool enter =
      line.field("open/path", "/runs/7/step_9000", state.open_path,
                 "The path of a checkpoint, or of a folder of steps.  (Enter opens it)",
                 line.room_next_to_button("Open"));
  const bool click =
      line.button("open/button", "Open", "Opens and checks the checkpoint of this path.",
                  ButtonStyle::kPrimary);
  return (enter || click) && !state.open_path.empty();
}

void open_path(Frame& frame, UiState& state) {
  frame.emit(reopen_command(frame.snapshot, state.open_path));
  frame.emit(CheckCommand{});
  state.open_path.clear();  // it may hold a password
}

// Opens the browser in the given folder, or in the one that failed to open.
void browse_button(Frame& frame, UiState& state, Line& line, const std::string& folder) {
  if (line.button("open/browse", "Browse…", Action::kOpen)) open_browser(frame, state, folder);
  line.text(frame.fonts.mono_small, frame.theme.quiet, to_text(key_of(Action::kOpen)));
}

// The supported formats that fit above `bottom`, and what identifies a folder of each.
void draw_formats(Frame& frame, Column& column, float bottom) {
  float wide = std::floor((column.width() - frame.px(24)) / 2), line = frame.px(19);
  static const std::vector<verbs::KnownFormat> kKnown = verbs::known_formats();
  const float room = std::max(0.0f, bottom - frame.px(12) - column.y);
  const auto fit = 2 * static_cast<std::size_t>(room / line);
  // The last position shows how many formats are left out.
  const std::size_t shown =
      kKnown.size() <= fit ? kKnown.size() : std::max<std::size_t>(fit, 1) - 1;
  for (std::size_t i = 0; i < shown; ++i) {
    const verbs::KnownFormat& format = kKnown[i];
    const std::size_t row = i / 2;
    float x = column.left + (i % 2 == 0 ? 0 : wide + frame.px(24));
    float middle = column.y + line * static_cast<float>(row) + frame.px(9);
    float used =
        text_from(column.draw, frame.fonts.small, x, middle, frame.theme.text, format.title);
    bool has_details = format.sign != format.title;
    if (has_details && used + text_width(frame.fonts.mono_small, format.sign) + frame.px(12) < wide)
      draw_text_ending_at(column.draw, frame.fonts.mono_small, x + wide, middle, frame.theme.quiet,
                          format.sign);
  }
  const std::size_t last_row = shown / 2;  // two per row
  if (shown < kKnown.size() && fit > 0)
    text_from(column.draw, frame.fonts.small, column.left + wide + frame.px(24),
              column.y + line * static_cast<float>(last_row) + frame.px(9), frame.theme.quiet,
              "and " + std::to_string(kKnown.size() - shown) + " more");
  const std::size_t rows = (std::min(kKnown.size(), fit) + 1) / 2;
  column.take(line * static_cast<float>(rows) + frame.px(4));
}

// Recent checkpoints with their verdicts, as many as fit.
void draw_opened_before(Frame& frame, UiState& state, Column& column, float bottom) {
  constexpr std::size_t kShown = 5;
  if (frame.snapshot.recent == nullptr || frame.snapshot.recent->empty()) return;
  const verbs::RecentPlaces& recent = *frame.snapshot.recent;
  float line = frame.px(27), room = bottom - column.y - frame.px(40);
  auto fits = static_cast<std::size_t>(std::max(0.0f, room / line));
  std::size_t shown = std::min({recent.size(), kShown, fits});
  if (shown == 0) return;
  gap(frame, column, Gap::kSmall);
  head(frame, column, "OPENED BEFORE");
  for (std::size_t i = 0; i < shown; ++i) {
    ImVec2 min{column.left - frame.px(8), column.y}, max{column.right, column.y + line};
    ImGui::SetCursorScreenPos(min);
    std::string id = "open/recent/" + std::to_string(i);
    const auto tip = [&] { return printable(recent[i].path) + "\nOpens it as it was before."; };
    bool clicked = control(frame, id, {max.x - min.x, line}, tip);
    if (ImGui::IsItemHovered())
      column.draw->AddRectFilled(min, max, frame.theme.selected, frame.px(4));
    draw_recent(frame, column.draw, recent[i], recent[i].summary, min, max);
    focus_ring(frame, column.draw);
    if (clicked) open_place(frame, state, reopen_recent_command(recent[i]));
    column.take(line);
  }
  gap(frame, column, Gap::kSmall);
}

// Adds the subject to messages like "is not a checkpoint".
std::string headline_of(const Frame& frame, const Error& error) {
  const std::string& message = error.message;
  constexpr std::string_view kVerbs[] = {"is ", "has ", "holds ", "ends "};
  if (std::ranges::none_of(kVerbs, [&](auto verb) { return message.starts_with(verb); }))
    return sentence(message);
  std::string path =
      error.place.file.empty() ? frame.snapshot.options.checkpoint : error.place.file;
  if (path.starts_with('.'))
    path = frame.snapshot.options.checkpoint;  // ".metadata" is relative to the checkpoint
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.substr(path.find_last_of('/') + 1) + " " + message;
}

}  // namespace

void draw_welcome(Frame& frame, UiState& state, Region region) {
  begin_region(frame, "welcome", region, frame.theme.background, false);
  bool has_recent = frame.snapshot.recent != nullptr && !frame.snapshot.recent->empty();
  Column column = middle_column(frame, region, 620, has_recent ? 480 : 340);
  if (frame.job.running || !frame.snapshot.options.checkpoint.empty()) {
    paragraph(frame, column, frame.fonts.title, frame.theme.text, "Opening…", Gap::kMedium);
    paragraph(frame, column, frame.fonts.mono_small, frame.theme.quiet,
              frame.snapshot.options.checkpoint);
    end_region();
    return;
  }
  paragraph(frame, column, frame.fonts.title, frame.theme.text, "Open a sharded checkpoint",
            Gap::kMedium);
  paragraph(frame, column, frame.fonts.text, frame.theme.quiet,
            "Drop its folder on this window, or type its path. Opening reads the metadata only; "
            "nothing is written into it unless you ask for a repair in place.",
            Gap::kLarge);
  if (path_line(frame, state, column)) open_path(frame, state);
  Line line(frame, column, 30, Gap::kMedium);
  if (is_possible(Action::kOpenDemo, frame, state) &&
      line.button_at_end("open/demo", "Open the demo", Tip([&] {
                           return "A mixture of experts that 64 ranks saved and that will not "
                                  "load. It is made in " +
                                  state.panel_state.cache_folder + "/demo and takes 60 MB of disk.";
                         })))
    run(Action::kOpenDemo, frame, state);
  browse_button(frame, state, line, "");
  draw_opened_before(frame, state, column, region.max.y);
  if (has_recent && region.max.y - column.y < frame.px(130)) return end_region();
  gap(frame, column, Gap::kSmall);
  head(frame, column, "WHAT IT READS");
  draw_formats(frame, column, region.max.y);
  if (has_recent || region.max.y - column.y < frame.px(90)) return end_region();
  gap(frame, column, Gap::kSmall);
  head(frame, column, "FROM A TERMINAL");
  paragraph(frame, column, frame.fonts.mono_small, frame.theme.text,
            "shardwright-gui step_9000 --spec spec.json", Gap::kSmall);
  paragraph(frame, column, frame.fonts.mono_small, frame.theme.text, "shardwright demo /tmp/demo");
  end_region();
}

// The error as printed in a terminal: what, where, expected, advice.
void draw_open_error(Frame& frame, UiState& state, Region region) {
  begin_region(frame, "error", region, frame.theme.background, false);
  const Error& error = *frame.snapshot.error;
  Column column = middle_column(frame, region, 720, 300);
  draw_sign(frame, column.draw, {column.left + frame.px(11), column.y + frame.px(10)}, frame.px(11),
            Sign::kBad);
  Column inside = indented(frame, column, 34);
  paragraph(frame, inside, frame.fonts.title, frame.theme.text, headline_of(frame, error),
            Gap::kLarge);
  Column rows = inside;
  rows.right = std::min(rows.right, rows.left + frame.px(560));
  row(frame, rows, "opened", frame.snapshot.options.checkpoint, frame.theme.text);
  if (!error.place.file.empty() && error.place.file != frame.snapshot.options.checkpoint)
    row(frame, rows, "file", error.place.file, frame.theme.text);
  if (error.place.offset)
    row(frame, rows, "at byte", human_count(*error.place.offset), frame.theme.bad);
  if (!error.place.tensor.empty()) row(frame, rows, "tensor", error.place.tensor, frame.theme.text);
  inside.y = rows.y + frame.px(16);
  if (!error.advice.empty()) {
    head(frame, inside, "WHAT TO DO");
    body(frame, inside, error.advice, Gap::kLarge);
  }
  head(frame, inside, "OPEN ANOTHER");
  if (path_line(frame, state, inside)) open_path(frame, state);
  Line line(frame, inside, 30, Gap::kMedium);
  browse_button(frame, state, line, frame.snapshot.options.checkpoint);
  end_region();
}

}  // namespace shw
