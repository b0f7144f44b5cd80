// Actions of the view: columns, zoom, colours, list order. None of them changes
// files.
#include <algorithm>
#include <array>

#include "views/action_rows.h"
#include "views/map/tensor_view.h"
#include "views/map/tile_colours.h"
#include "views/panels/content_panels.h"

namespace shw {
namespace {

// Closes panels in front of the summary, so that the key has a visible effect.
void toggle_summary(Frame& frame, UiState& state) {
  bool is_seen = state.summary_open && !state.table.open && !viewer_is_open(frame, state);
  close_viewers(frame, state);
  state.table.open = false;
  state.summary_open = !is_seen;
  state.summary_for = frame.snapshot.tensor;
}

bool has_several_ranks(const Frame& frame, const UiState& /*state*/) {
  return frame.snapshot.checkpoint != nullptr && frame.digest.mesh->shares.size() > 1 &&
         frame.digest.overview->files.files.size() > 1;
}
void type_ranks_per_node(Frame& frame, UiState& state) {
  if (!state.summary_open || state.table.open || viewer_is_open(frame, state))
    toggle_summary(frame, state);
  state.panel_state.ranks_wanted = true;
}

void zoom_by(UiState& state, double factor) {
  state.map.zoom = std::clamp(state.map.zoom * factor, 1.0, 1e7);
}
void zoom_to_fit(Frame& /*frame*/, UiState& state) {
  state.map.zoom = 1;
  state.map.pan_row = state.map.pan_column = 0;
  state.map.leads_after = false;
}

// The dim that the slice fixes and that is split into most parts.
std::optional<std::size_t> most_divided_fixed_dim(const Frame& frame, const UiState& state) {
  const Picture* picture = frame.digest.picture.get();
  if (picture == nullptr || state.map.slice.at.size() != picture->saved->ndim())
    return std::nullopt;
  for (int dim : other_dims(*picture, state.map.slice)) {
    const auto d = static_cast<std::size_t>(dim);
    if (picture->saved->shape()[d] > 1) return d;
  }
  return std::nullopt;
}
bool has_slices(const Frame& frame, const UiState& state) {
  return has_tensor(frame, state) && most_divided_fixed_dim(frame, state).has_value();
}
template <int kStep>
void step_slice(Frame& frame, UiState& state) {
  const std::size_t dim = *most_divided_fixed_dim(frame, state);
  std::int64_t& at = state.map.slice.at[dim];
  at = std::clamp<std::int64_t>(at + kStep, 0, frame.digest.picture->saved->shape()[dim] - 1);
}

template <ColourBy kBy>
void colour(Frame& frame, UiState& state) {
  colour_by(frame, state, kBy);
}

bool has_axes(const Frame& frame, const UiState& state) {
  return has_tensor(frame, state) && frame.digest.mesh != nullptr &&
         !frame.digest.mesh->axes.empty();
}
// Cycles through the mesh axes and then back to the writer.
void colour_by_next_axis(Frame& frame, UiState& state) {
  const int next = state.colour_by == ColourBy::kWriter ? state.colour_axis + 1 : 0;
  colour_by(frame, state, ColourBy::kWriter);
  if (static_cast<std::size_t>(next) < frame.digest.mesh->axes.size()) state.colour_axis = next;
}

bool has_unknown_tiles(const Frame& frame, const UiState& state) {
  return has_tensor(frame, state) && !are_tile_values_complete(frame.snapshot);
}

template <SortKey kKey, bool kDescending>
void sort_by(Frame& frame, UiState& state) {
  state.sort = {kKey, kDescending};
  frame.emit(state.sort);
}

void fold_all(Frame& frame, UiState& state) {
  for (const ListGroup& group : frame.digest.list->groups) state.folded.emplace(group.module);
  state.unfolded.clear();
}
void unfold_all(Frame& frame, UiState& state) {
  for (const ListRun& run : frame.digest.list->runs) state.unfolded.emplace(run.title);
  state.folded.clear();
}

bool can_read_numbers(const Frame& frame, const UiState& state) {
  return has_checkpoint(frame, state) && frame.snapshot.numbers == nullptr &&
         !frame.runs("tensor-numbers");
}

constexpr std::array kViewRows{
    ActionRow{Action::kSummary, "Show the checkpoint as a whole", ctrl(Key::kHome), has_checkpoint,
              toggle_summary},
    ActionRow{Action::kTensorNumbers,
              "Read norm, zeros and NaN of every tensor",
              {},
              can_read_numbers,
              emit_one<TensorNumbersCommand>,
              OverlayPolicy::kBlocked,
              question_before_transfer},
    ActionRow{Action::kRanksPerNode,
              "Sum files and damage by node",
              {},
              has_several_ranks,
              type_ranks_per_node},
    ActionRow{Action::kLeftColumn, "Show or hide the list of tensors", ctrl(Key::kB),
              has_checkpoint,
              [](Frame&, UiState& state) { toggle(state.layout.left, state.left_rail); }},
    ActionRow{Action::kRightColumn, "Show or hide the findings", ctrl_shift(Key::kB),
              has_checkpoint,
              [](Frame&, UiState& state) { toggle(state.layout.right, state.right_rail); }},
    ActionRow{Action::kZoomIn,
              "Zoom in",
              {Key::kPlus},
              has_tensor,
              [](Frame&, UiState& state) { zoom_by(state, 1.5); }},
    ActionRow{Action::kZoomOut,
              "Zoom out",
              {Key::kMinus},
              has_tensor,
              [](Frame&, UiState& state) { zoom_by(state, 1 / 1.5); }},
    ActionRow{Action::kZoomFit, "Show the whole tensor", {Key::k0}, has_tensor, zoom_to_fit},
    ActionRow{Action::kPreviousSlice,
              "Go to the slice before",
              {Key::kBracketLeft},
              has_slices,
              step_slice<-1>},
    ActionRow{Action::kNextSlice,
              "Go to the next slice",
              {Key::kBracketRight},
              has_slices,
              step_slice<1>},
    ActionRow{Action::kColourWriter, "Colour the tiles by writer", ctrl(Key::k1), has_tensor,
              colour<ColourBy::kWriter>},
    ActionRow{Action::kColourFile, "Colour the tiles by file", ctrl(Key::k2), has_tensor,
              colour<ColourBy::kFile>},
    ActionRow{Action::kColourFinding, "Colour the tiles by finding", ctrl(Key::k3), has_tensor,
              colour<ColourBy::kFinding>},
    ActionRow{Action::kColourOdd, "Colour the tiles by NaN and infinite", ctrl(Key::k4), has_tensor,
              colour<ColourBy::kNonFinite>},
    ActionRow{Action::kColourGreatest, "Colour the tiles by largest magnitude", ctrl(Key::k5),
              has_tensor, colour<ColourBy::kGreatest>},
    ActionRow{Action::kColourZeros, "Colour the tiles by share of zeros", ctrl(Key::k6), has_tensor,
              colour<ColourBy::kZeros>},
    ActionRow{Action::kColourAxis, "Colour the tiles by the next axis of the mesh", ctrl(Key::k7),
              has_axes, colour_by_next_axis},
    ActionRow{Action::kReadTileValues,
              "Look at the values of every tile",
              {},
              has_unknown_tiles,
              request_tile_values},
    ActionRow{Action::kSortRecorded,
              "Sort as recorded",
              {},
              has_checkpoint,
              sort_by<SortKey::kRecorded, false>},
    ActionRow{
        Action::kSortName, "Sort by name", {}, has_checkpoint, sort_by<SortKey::kName, false>},
    ActionRow{Action::kSortBytes,
              "Sort by bytes, largest first",
              {},
              has_checkpoint,
              sort_by<SortKey::kBytes, true>},
    ActionRow{Action::kSortTiles,
              "Sort by tiles, most first",
              {},
              has_checkpoint,
              sort_by<SortKey::kChunks, true>},
    ActionRow{Action::kSortFindings,
              "Sort by findings, worst first",
              {},
              has_checkpoint,
              sort_by<SortKey::kFindings, true>},
    ActionRow{Action::kFoldAll, "Fold all modules", {}, has_checkpoint, fold_all},
    ActionRow{Action::kUnfoldAll, "Unfold all modules", {}, has_checkpoint, unfold_all},
};

}  // namespace

std::span<const ActionRow> view_actions() {
  return kViewRows;
}

}  // namespace shw
