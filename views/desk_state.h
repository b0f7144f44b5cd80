// What a person sees and has not said: scroll, zoom, what is folded, which panel is open.
// Everything else is in the Session.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "views/browser_state.h"
#include "views/bytes_state.h"
#include "views/frame.h"
#include "views/values_state.h"

namespace shw {

struct MapState {
  std::weak_ptr<const TileSet> of;  // whose slice this is; weak, so that its address is not reused
  Slice slice;
  double zoom = 1, pan_row = 0, pan_column = 0;  // pan: elements at the upper left corner
  std::optional<ChunkId> hovered;                // under the mouse, by arithmetic
  std::optional<ChunkId> pinned;                 // a replay's "hover tile N": stands for the mouse
  std::optional<ChunkId> followed;               // the selection that last moved the slice
};

struct DeskState {
  std::string filter;
  bool filter_wanted = false;                 // puts the keyboard into the filter at the next frame
  std::set<std::string, std::less<>> folded;  // modules
  std::weak_ptr<const ListModel> folded_for;  // the list that `row_of_group` was made for
  std::size_t folded_count = 0;
  std::vector<std::uint32_t> row_of_group;
  std::optional<TensorId> shown;  // the row that was last scrolled to
  SortCommand sort;
  MapState map;
  std::weak_ptr<const Checkpoint> looked_into;  // whose files the two below are of
  BytesState bytes;
  BrowserState browser;
  ValuesState values;

  bool map_has_keys = false;  // arrows move the tile, not the row
  bool fill_open = false;     // another checkpoint to fill from is being named
  bool plan_open = false, palette_open = false, explain_open = false, mesh_open = false;
  std::string palette_text, out, fill_path, open_path, mesh_text;
  int palette_row = 0;
  bool palette_wanted = false;
  float plan_height = 420, explain_height = 360,
        mesh_height = 480;  // pixels that the panels took in the last frame
  std::string toast;
  double toast_until = 0;
  bool quit = false;
};

// The chunk that the right column describes and every picture frames.
std::optional<ChunkId> current_tile(const Frame& frame, const DeskState& state);

}  // namespace shw
