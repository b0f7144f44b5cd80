// Decides when the map of names is shown and which row is unfolded; also its actions.
#include <algorithm>
#include <array>

#include "core/model/evidence.h"
#include "views/action_rows.h"
#include "views/actions.h"
#include "views/controls.h"
#include "views/line.h"
#include "views/panels/content_panels.h"
#include "views/panels/panels.h"

namespace shw {
namespace {

using verbs::PairedNames;
using verbs::PairedRow;
using verbs::PairedTensors;

// Computes the worst finding of each row, once per check.
void compute_row_marks(const Frame& frame, NamesMapState& map, const PairedNames& names) {
  const auto& marks = frame.digest.marks;
  if (map.marks.size() == names.rows.size() && map.marks_of.lock() == marks) return;
  map.marks_of = marks;
  map.marks.assign(names.rows.size(), 0);
  for (std::size_t i = 0; i < names.rows.size(); ++i) {
    for (const PairedTensors& tensors : names.rows[i].tensors) {
      for (const std::string& fqn : names.is_first_from ? tensors.from : tensors.to) {
        const auto tensor = frame.snapshot.checkpoint->find(fqn);
        if (!tensor || index_of(*tensor) >= marks->size()) continue;
        const std::uint8_t mark = (*marks)[index_of(*tensor)];
        if (mark <= kErrorMark) map.marks[i] = std::max(map.marks[i], mark);
      }
    }
  }
}

// The most interesting row: one with a difference or a finding, otherwise one that lacks a tensor.
std::optional<std::size_t> first_anomalous_row(const NamesMapState& map, const PairedNames& names) {
  const auto found = std::find(map.marks.begin(), map.marks.end(), kErrorMark);
  if (found != map.marks.end()) return static_cast<std::size_t>(found - map.marks.begin());
  for (const auto& odd : {&PairedRow::different, &PairedRow::missing}) {
    for (std::size_t i = 0; i < names.rows.size(); ++i) {
      if (names.rows[i].*odd != 0) return i;
    }
  }
  return std::nullopt;
}

// Finds the row of a difference, once per difference: a map may name 70,000 tensors.
void find_pair(NamesMapState& map, const PairedNames& names, const std::string& fqn) {
  map.pair_row.reset();
  for (std::size_t i = 0; i < names.rows.size(); ++i) {
    const auto& tensors = names.rows[i].tensors;
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      for (const auto* side : {&tensors[k].from, &tensors[k].to}) {
        if (std::find(side->begin(), side->end(), fqn) == side->end()) continue;
        map.pair_row = i;
        map.pair_index = k;
        return;
      }
    }
  }
}

// The row of the selected tensor, otherwise the first interesting one.
std::optional<std::size_t> row_to_show(const Frame& frame, NamesMapState& map,
                                       const PairedNames& names) {
  const Snapshot& s = frame.snapshot;
  if (!s.tensor) return first_anomalous_row(map, names);
  find_pair(map, names, std::string(s.checkpoint->fqn(*s.tensor)));
  const auto row = map.pair_row;
  map.pair_row.reset();
  return row ? row : first_anomalous_row(map, names);
}

void find_shown_pair(const Frame& frame, NamesMapState& map, const PairedNames& names) {
  const Snapshot& s = frame.snapshot;
  if (s.difference == map.pair_of) return;
  map.pair_of = s.difference;
  map.pair_row.reset();
  if (s.difference && s.compared != nullptr)
    find_pair(map, names, s.compared->difference.tensors[*s.difference].fqn);
}

// Another difference unfolds its row. If another tensor is selected elsewhere, the map closes to
// show it.
void follow_selection_elsewhere(const Frame& frame, NamesMapState& map) {
  const Snapshot& s = frame.snapshot;
  const bool is_difference =
      s.difference != map.difference && s.difference && s.compared != nullptr;
  if (is_difference) {
    map.row = map.pair_row;
    map.is_row_wanted = map.row.has_value();
  } else if (s.tensor != map.tensor && s.tensor) {
    map.open = false;
  }
  map.tensor = s.tensor;
  map.difference = s.difference;
}

}  // namespace

bool names_map_is_open(const Frame& frame, UiState& state) {
  const auto& paired = frame.snapshot.paired;
  NamesMapState& map = state.names;
  if (paired == nullptr) {
    map.open = false;
    if (map.wanted && frame.snapshot.compared != nullptr)
      show_toast(frame, state, "Both have the names of one program, so there is no map of names.");
    map.wanted = map.wanted && frame.snapshot.compared == nullptr;
    return false;
  }
  if (map.of.lock() != paired) {
    map.of = paired;
    map.marks.clear();
    compute_row_marks(frame, map, *paired);
    map.row = row_to_show(frame, map, *paired);
    map.is_row_wanted = map.row.has_value();
    map.open = true;
    map.wanted = false;
    map.tensor = frame.snapshot.tensor;
    map.difference = frame.snapshot.difference;
    map.pair_of.reset();
    map.pair_row.reset();
  }
  compute_row_marks(frame, map, *paired);
  find_shown_pair(frame, map, *paired);
  if (map.open) follow_selection_elsewhere(frame, map);
  return map.open;
}

const PairedTensors* shown_pair(const Frame& frame, const UiState& state) {
  const auto& paired = frame.snapshot.paired;
  const NamesMapState& map = state.names;
  if (paired == nullptr || map.of.lock() != paired || map.pair_of != frame.snapshot.difference ||
      !map.pair_row)
    return nullptr;
  return &paired->rows[*map.pair_row].tensors[map.pair_index];
}

// Shown for findings that were made through a map between two programs.
void draw_names_chip(Frame& frame, UiState& state, Column& column, const Finding& finding) {
  if (!has_evidence(finding, "map") || !is_possible(Action::kNamesMap, frame, state)) return;
  column.take(-frame.px(8));
  if (Line(frame, column, 22, Gap::kLarge)
          .chip_button("finding/names", "Show the map of names", Action::kNamesMap))
    run(Action::kNamesMap, frame, state);
}

namespace {

// Path of the other checkpoint, by default the reference of the check.
std::string other_path(const Frame& frame) {
  if (frame.snapshot.compared != nullptr || frame.snapshot.paired != nullptr)
    return frame.snapshot.compared_with;
  return frame.snapshot.options.against;
}

bool can_show_names(const Frame& frame, const UiState& /*state*/) {
  return frame.snapshot.checkpoint != nullptr &&
         (frame.snapshot.paired != nullptr ||
          (frame.snapshot.compared == nullptr && !frame.snapshot.options.against.empty() &&
           !frame.runs("compare")));
}
void show_names(Frame& frame, UiState& state) {
  close_viewers(frame, state);
  if (frame.snapshot.paired == nullptr) {
    state.names.wanted = true;
    frame.emit(CompareCommand{other_path(frame), false});
    return;
  }
  state.names.open = !state.names.open;
  state.names.row = row_to_show(frame, state.names, *frame.snapshot.paired);
  state.names.is_row_wanted = state.names.row.has_value();
  state.names.pair_of.reset();
  state.names.tensor = frame.snapshot.tensor;
  state.names.difference = frame.snapshot.difference;
}

bool can_learn(const Frame& frame, const UiState& /*state*/) {
  return frame.snapshot.checkpoint != nullptr && !other_path(frame).empty() && !frame.runs("learn");
}
void learn_names(Frame& frame, UiState& /*state*/) {
  frame.emit(LearnCommand{other_path(frame)});
}

constexpr std::array kNamesRows{
    ActionRow{Action::kNamesMap, "Show the map of names to the other checkpoint",
              ctrl_shift(Key::kM), can_show_names, show_names},
    ActionRow{
        Action::kLearnNames, "Find the map of names in the elements", {}, can_learn, learn_names},
};

}  // namespace

std::span<const ActionRow> names_actions() {
  return kNamesRows;
}

}  // namespace shw
