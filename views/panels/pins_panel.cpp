// The panel of pinned places: a note for the one on the screen, and the way to the others.
#include <fmt/core.h>

#include <imgui.h>

#include "core/verbs/place_mark.h"
#include "views/actions.h"
#include "views/line.h"
#include "views/panels/panels.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr std::size_t kShownPins = 100;

void go_to_pin(Frame& frame, UiState& state, const verbs::Pin& pin) {
  const Checkpoint& checkpoint = *frame.snapshot.checkpoint;
  const auto tensor = checkpoint.find(pin.tensor);
  if (!tensor) return show_toast(frame, state, "This checkpoint has no tensor " + pin.tensor);
  frame.emit(SelectTensorCommand{pin.tensor});
  if (auto tile = tile_of_mark(checkpoint, *tensor, pin.tile)) frame.emit(SelectChunkCommand{tile});
  state.summary_open = state.table.open = false;
  state.panel_state.pins_open = false;
}

void draw_pin(Frame& frame, UiState& state, Column& column, const verbs::Pin& pin,
              std::size_t number) {
  const float height = frame.px(pin.note.empty() ? 28 : 46);
  const float remove = button_size(frame, "Unpin").x;
  ImGui::SetCursorScreenPos({column.left, column.y});
  const std::string id = fmt::format("pins/{}", number);
  const std::string place = pin.tensor + (pin.tile.empty() ? "" : "  " + pin.tile);
  const bool clicked =
      row_control(frame, id.c_str(), id, {column.width() - remove - frame.px(10), height}, false,
                  Tip([&] { return "Goes to " + place; }));
  focus_ring(frame, column.draw);
  const Measure small = measure_with(frame.fonts.small);
  const float wide = column.width() - remove - frame.px(26);
  text_from(column.draw, frame.fonts.mono_small, column.left + frame.px(6), column.y + frame.px(14),
            frame.theme.text, elide_path(place, wide, measure_with(frame.fonts.mono_small)));
  if (!pin.note.empty())
    text_from(column.draw, frame.fonts.small, column.left + frame.px(6), column.y + frame.px(33),
              frame.theme.quiet, elide_end(pin.note, wide, small));
  const std::string unpin = fmt::format("pins/{}/unpin", number);
  if (button(frame, unpin.c_str(), "Unpin", "Takes this place off the list.",
             {column.right - remove, column.y}, ButtonStyle::kQuiet))
    frame.emit(UnpinCommand{number});
  if (clicked) go_to_pin(frame, state, pin);
  column.take(height + frame.px(6));
}

}  // namespace

void open_pins(Frame& /*frame*/, UiState& state) {
  state.panel_state.pins_open = state.panel_state.pins_wanted = true;
  state.panel_state.pin_note.clear();
}

void draw_pins(Frame& frame, UiState& state) {
  PanelsState& panel_state = state.panel_state;
  const Snapshot& s = frame.snapshot;
  OverlayPanel panel;
  if (!begin_panel(frame, state, "##pins", 620, panel_state.pins_height, "Pinned places and notes",
                   panel))
    panel_state.pins_open = false;
  Column& column = panel.content;
  bool entered = false;
  if (s.checkpoint != nullptr && s.tensor) {
    head(frame, column, "PIN THIS PLACE");
    paragraph(frame, column, frame.fonts.mono_small, frame.theme.text,
              std::string(s.checkpoint->fqn(*s.tensor)) +
                  (s.chunk ? "  " + tile_mark(*s.checkpoint, *s.chunk) : ""),
              Gap::kSmall);
    if (panel_state.pins_wanted) ImGui::SetKeyboardFocusHere();
    entered = field(frame, column, "pins/note", "a note, or none", panel_state.pin_note,
                    "What is to be remembered of this place.  (Enter pins it)", Gap::kMedium);
  }
  panel_state.pins_wanted = false;
  const std::size_t count = s.pins == nullptr ? 0 : s.pins->size();
  head(frame, column, "PINNED", "·  " + human_count(count));
  if (count == 0)
    caption(frame, column,
            "None yet. Pins are saved with \"Save this place as a file for a colleague\", and "
            "are in the next report.");
  for (std::size_t i = 0; i < std::min(count, kShownPins); ++i)
    draw_pin(frame, state, column, (*s.pins)[i], i);
  panel_state.pins_height = end_panel_content(frame, panel);
  Line line(frame, panel.all);
  if (s.tensor &&
      (line.button_at_end("pins/pin", "Pin this place", "Adds the place on the screen.  (Enter)",
                          ButtonStyle::kPrimary) ||
       entered)) {
    frame.emit(PinCommand{panel_state.pin_note});
    panel_state.pin_note.clear();
  }
  if (close_button(line, "pins/close")) panel_state.pins_open = false;
  end_overlay();
}

}  // namespace shw
