// Says where a small file goes, how large it is and how much is free, and writes it only then.
#include <fmt/core.h>

#include <imgui.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "core/base/checked.h"
#include "views/actions.h"
#include "views/line.h"
#include "views/panels/panels.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

using verbs::NewFile;

Action action_of(NewFile file) {
  switch (file) {
    case NewFile::kReport:
      return Action::kReport;
    case NewFile::kView:
      return Action::kSaveView;
    case NewFile::kHashes:
      return Action::kHashes;
    case NewFile::kNpy:
      return Action::kSaveNpy;
    case NewFile::kCsv:
      return Action::kSaveCsv;
    case NewFile::kPng:
      return Action::kExportPng;
    case NewFile::kSvg:
      return Action::kExportSvg;
  }
  return Action::kReport;
}

// Upper bound of the written file's size; nullopt if it is always smaller than a picture.
std::optional<std::uint64_t> most_bytes(const Snapshot& snapshot, NewFile file) {
  const bool is_csv = file == NewFile::kCsv;
  if (!is_csv && file != NewFile::kNpy) return std::nullopt;
  if (snapshot.values == nullptr || !snapshot.values->values) return std::nullopt;
  const verbs::SliceValues& values = *snapshot.values->values;
  const std::string dtype = verbs::npy_dtype(values.dtype);  // "<f4"
  std::int64_t each = 40;                                    // the longest number as text
  if (!is_csv && dtype.size() > 2)
    std::from_chars(dtype.data() + 2, dtype.data() + dtype.size(), each);
  const auto elements = checked_mul(values.rows, values.columns);
  const auto bytes = elements ? checked_mul(*elements, each) : std::nullopt;
  return bytes ? static_cast<std::uint64_t>(*bytes) : UINT64_MAX;
}

// The place of the text that is typed now; null: not examined yet.
const verbs::NewFilePlace* place_of_typed_path(const Frame& frame, const SaveState& save) {
  const verbs::NewFilePlace* place = frame.snapshot.place.get();
  const bool is_this = place != nullptr && place->file == save.file &&
                       place->typed_path == without_blanks(save.path);
  return is_this && frame.snapshot.place != save.before ? place : nullptr;
}

bool can_write(const Frame& frame, const UiState& state) {
  const verbs::NewFilePlace* place = place_of_typed_path(frame, state.save);
  return place != nullptr && !place->refused &&
         is_possible(action_of(state.save.file), frame, state);
}

void write_file(Frame& frame, UiState& state) {
  SaveState& save = state.save;
  const std::string path = place_of_typed_path(frame, save)->path;
  save.open = false;
  PanelsState& panel_state = state.panel_state;
  switch (save.file) {
    case NewFile::kReport:
      panel_state.report_asked = true;
      panel_state.report_before = frame.snapshot.written;
      return frame.emit(ReportCommand{path});
    case NewFile::kView:
      panel_state.view = {true, frame.snapshot.saved_view};
      return frame.emit(SaveViewCommand{path});
    case NewFile::kHashes:
      panel_state.hashes = {true, frame.snapshot.hashes};
      return frame.emit(HashCommand{path});
    case NewFile::kNpy:
      return frame.emit(SaveValuesCommand{verbs::ValuesFile::kNpy, path});
    case NewFile::kCsv:
      return frame.emit(SaveValuesCommand{verbs::ValuesFile::kCsv, path});
    case NewFile::kPng:
    case NewFile::kSvg:
      panel_state.picture_path = path;
      panel_state.picture_wanted =
          save.file == NewFile::kPng ? PictureFile::kPng : PictureFile::kSvg;
      return;
  }
}

void draw_place(Frame& frame, const SaveState& save, Column& column) {
  const verbs::NewFilePlace* place = place_of_typed_path(frame, save);
  if (place == nullptr) return caption(frame, column, "The place is being examined.", Gap::kMedium);
  if (place->refused) {
    const Error& why = *place->refused;
    return signed_paragraph(frame, column, Sign::kBad, frame.theme.bad,
                            printable(why.place.file) + ": " + why.message, Gap::kMedium);
  }
  std::string text = "Will be " + printable(place->path) + "; nothing is there yet.";
  const auto bytes = most_bytes(frame.snapshot, save.file);
  if (bytes)
    text += fmt::format(" {}{} are written.", save.file == NewFile::kCsv ? "At most " : "",
                        human_bytes(*bytes));
  if (place->free) text += " " + human_bytes(*place->free) + " are free there.";
  caption(frame, column, text, Gap::kMedium);
  if (bytes && place->free && *bytes > *place->free)
    signed_paragraph(frame, column, Sign::kBad, frame.theme.bad,
                     "The disk may have too little room for it.", Gap::kSmall);
}

}  // namespace

void open_save_panel(const Frame& frame, UiState& state, NewFile file) {
  state.save = SaveState{};
  state.save.open = true;
  state.save.file = file;
  state.save.before = frame.snapshot.place;
}

void draw_save_panel(Frame& frame, UiState& state) {
  SaveState& save = state.save;
  const std::string typed = without_blanks(save.path);
  if (save.asked != typed) {
    save.asked = typed;
    frame.emit(PlaceCommand{save.file, typed});
  }
  OverlayPanel panel;
  if (!begin_panel(frame, state, "##save", 620, save.height, row_of(action_of(save.file)).name,
                   panel))
    save.open = false;
  Column& column = panel.content;
  const verbs::NewFilePlace* place = place_of_typed_path(frame, save);
  const std::string hint =
      place != nullptr && typed.empty() ? place->path : "a folder or a new file";
  if (save.frames++ == 0) ImGui::SetKeyboardFocusHere();
  const bool entered = field(frame, column, "save/path", hint.c_str(), save.path,
                             "A folder, or a file that is not there yet.  (Enter writes)");
  draw_place(frame, save, column);
  save.height = end_panel_content(frame, panel);
  Line line(frame, panel.all);
  const bool can = can_write(frame, state);
  const bool clicked =
      can && line.button_at_end("save/write", "Write", "Writes this file.  (Enter)",
                                ButtonStyle::kPrimary);
  if (line.button_at_end("save/close", "Cancel", "Writes nothing.  (Esc)")) save.open = false;
  if (entered && !can) save.frames = 0;  // Enter has taken the keyboard from the field
  if (can && (clicked || entered)) write_file(frame, state);
  end_overlay();
}

}  // namespace shw
