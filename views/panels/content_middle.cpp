#include "views/controls.h"
#include "views/line.h"
#include "views/panels/content_panels.h"

#include <algorithm>
#include <array>

#include "views/action_rows.h"
#include "views/actions.h"
#include "views/panels/panels.h"
#include "views/panels/values_parts.h"

namespace shw {
namespace {

constexpr float kMinWidth = 780;  // room for offset, 16 bytes, their text and the margin

}  // namespace

bool viewer_is_open(const Frame& frame, UiState& state) {
  if (state.last_viewed_checkpoint.lock() != frame.snapshot.checkpoint) {
    state.last_viewed_checkpoint = frame.snapshot.checkpoint;
    state.bytes.open = state.values.open = false;
    // A closed comparison also closes its panel, which would be empty and hide the findings.
    if (state.has_viewed_files && frame.snapshot.compared == nullptr) state.compare_open = false;
    state.has_viewed_files = frame.snapshot.checkpoint != nullptr;
  }
  return state.bytes.open || frame.snapshot.bytes != nullptr || state.values.open ||
         frame.snapshot.values != nullptr;
}

Region viewer_region(const Frame& frame, Region left, Region centre, Region right) {
  float wanted = frame.px(kMinWidth);
  if (centre.max.x - centre.min.x >= wanted) return centre;
  if (centre.max.x - left.min.x >= wanted) return {left.min, centre.max};
  return {left.min, right.max};
}

void draw_viewer(Frame& frame, UiState& state, Region region) {
  state.map.hovered.reset();  // the map is hidden
  // If both are open, shows the one requested last.
  bool values = state.values.open || (!state.bytes.open && frame.snapshot.values != nullptr);
  if (values)
    draw_values(frame, state, region);
  else
    draw_bytes(frame, state, region);
}

void close_viewers(Frame& frame, UiState& state) {
  if (frame.snapshot.bytes != nullptr || state.bytes.open)
    frame.emit(BytesCommand{BytesCommand::Go::kClose});
  if (frame.snapshot.values != nullptr || state.values.open) frame.emit(ValuesCommand{true});
  state.bytes.open = state.values.open = state.map_has_keys = false;
}

void draw_viewer_chips(Frame& frame, UiState& state, Column& column, bool of_finding) {
  if (!of_finding) gap(frame, column, Gap::kTight);
  Line line(frame, column, 22, of_finding ? Gap::kLarge : Gap::kSmall);
  if (line.chip_button(of_finding ? "finding/bytes" : "tile/bytes", "Show the bytes",
                       of_finding ? Action::kShowFindingBytes : Action::kShowBytes))
    show_bytes(frame, state, of_finding);
  if (!of_finding && line.chip_button("tile/values", "Show the values", Action::kShowValues))
    show_values(frame, state);
  if (of_finding && line.chip_button("finding/explain", "Explain this rule", Action::kExplain))
    run(Action::kExplain, frame, state);
}

namespace {

bool has_bytes(const Frame& frame, const UiState& /*state*/) {
  return frame.snapshot.bytes != nullptr && frame.snapshot.bytes->window;
}

template <bool kOfFinding>
void show_bytes_of_finding(Frame& frame, UiState& state) {
  show_bytes(frame, state, kOfFinding);
}

bool has_next_value(const Frame& frame, const UiState& /*state*/) {
  return search_target_of_f3(frame.snapshot).has_value();
}

void go_to_next_value(Frame& frame, UiState& /*state*/) {
  frame.emit(ValuesCommand{false, {}, search_target_of_f3(frame.snapshot)});
}

void go_to_index(Frame& frame, UiState& state) {
  if (frame.snapshot.values == nullptr) show_values(frame, state);
  state.values.index_wanted = true;
}

template <verbs::ValuesFile kKind>
bool can_save_values(const Frame& frame, const UiState& /*state*/) {
  const auto& shown = frame.snapshot.values;
  if (shown == nullptr || !shown->values) return false;
  return kKind == verbs::ValuesFile::kCsv || !verbs::npy_dtype(shown->values->dtype).empty();
}

template <BytesCommand::Go kWhere>
void go_to_adjacent_bytes(Frame& frame, UiState& /*state*/) {
  frame.emit(BytesCommand{kWhere});
}

constexpr std::array kLookRows{
    ActionRow{Action::kShowBytes, "Show the bytes", ctrl(Key::kH), has_tensor,
              show_bytes_of_finding<false>},
    ActionRow{Action::kShowFindingBytes, "Show the bytes of the finding", ctrl_shift(Key::kH),
              has_findings, show_bytes_of_finding<true>},
    ActionRow{Action::kNextRecord, "Go to the next record", alt(Key::kDown), has_bytes,
              go_to_adjacent_bytes<BytesCommand::Go::kNext>},
    ActionRow{Action::kPreviousRecord, "Go to the previous record", alt(Key::kUp), has_bytes,
              go_to_adjacent_bytes<BytesCommand::Go::kPrevious>},
    ActionRow{Action::kCopyBytes, "Copy the bytes as text", {}, has_bytes, copy_bytes},
    ActionRow{Action::kShowValues, "Show the values", ctrl_shift(Key::kV), has_tensor, show_values},
    ActionRow{Action::kGoToIndex, "Go to an index of the values", ctrl(Key::kG), has_tensor,
              go_to_index},
    ActionRow{Action::kNextValue,
              "Go to the next NaN or difference of the values",
              {Key::kF3},
              has_next_value,
              go_to_next_value},
    ActionRow{Action::kSaveNpy,
              "Save the values of the slice as .npy",
              {},
              can_save_values<verbs::ValuesFile::kNpy>,
              request_file<verbs::NewFile::kNpy>},
    ActionRow{Action::kSaveCsv,
              "Save the values of the slice as .csv",
              {},
              can_save_values<verbs::ValuesFile::kCsv>,
              request_file<verbs::NewFile::kCsv>},
    ActionRow{Action::kTable, "Show the tensors as a table", ctrl(Key::kT), has_checkpoint,
              toggle_table},
};

}  // namespace

std::span<const ActionRow> viewer_actions() {
  return kLookRows;
}

}  // namespace shw
