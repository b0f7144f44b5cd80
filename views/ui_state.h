// What a person sees and has not said: scroll, zoom, what is folded, which panel is open.
// Everything else is in the Session.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "views/browser_state.h"
#include "views/bytes_state.h"
#include "views/frame.h"
#include "views/habits_state.h"
#include "views/list_rows.h"
#include "views/names_map_state.h"
#include "views/palette_search.h"
#include "views/plan_state.h"
#include "views/run_state.h"
#include "views/tab_order.h"
#include "views/table_state.h"
#include "views/tile_paint.h"
#include "views/ui_layout.h"
#include "views/values_state.h"

namespace shw {

struct MapState {
  std::weak_ptr<const TileSet> of;  // whose slice this is; weak, so that its address is not reused
  Slice slice;
  double zoom = 1, pan_row = 0, pan_column = 0;  // pan: elements at the upper left corner
  std::optional<ChunkId> hovered;                // under the mouse, by arithmetic
  std::optional<ChunkId> pinned;                 // a replay's "hover tile N": stands for the mouse
  std::size_t panels_hidden = 0;                 // in the last frame
  std::size_t first_panel = 0;      // where not all pictures fit: which one comes first
  std::optional<ChunkId> followed;  // the selection that last moved the slice
};

// What another tab shows of a tensor of the same shape, until that tensor is on the map here.
struct WantedPlace {
  TensorId tensor{};
  Slice slice;
  double zoom = 1, pan_row = 0, pan_column = 0;
};

// What a right click asked for, until its menu is drawn; and whose menu that is.
struct MenuState {
  std::optional<TensorId> tensor;
  std::optional<ChunkId> chunk;  // nothing: the tensor's row
  bool wanted = false;
};

enum class Action : std::uint8_t;  // views/action.h

// What the cells of the overview's matrix are coloured by.
enum class MatrixBy : std::uint8_t { kFindings, kDifference, kNan, kBytes };

struct UiState {
  std::string filter;
  bool filter_wanted = false;                 // puts the keyboard into the filter at the next frame
  std::set<std::string, std::less<>> folded;  // modules
  std::set<std::string, std::less<>> unfolded;  // runs of layers, by their titles
  ListRows rows;
  bool rows_moved_by_key = false;  // the next selection comes from an arrow in the list
  std::optional<TensorId> shown;   // the row that was last scrolled to
  SortCommand sort;
  MapState map;
  std::optional<WantedPlace> place_wanted;
  std::weak_ptr<const Checkpoint> looked_into;  // whose files the two below are of
  bool has_looked = false;                      // at any
  BytesState bytes;
  BrowserState browser;
  ValuesState values;
  TableState table;
  NamesMapState names;
  RunState run;
  MatrixBy matrix_by = MatrixBy::kFindings;

  PlanState plan;  // of the repair's panel
  bool certificate_open = false;
  bool compare_open = false, compare_wanted = false;  // the keyboard goes into its line
  std::string compare_path;

  UiLayout layout;
  bool left_rail = false, right_rail = false;  // in the last frame
  bool summary_open = false;                   // the whole checkpoint in place of the tensor
  std::optional<TensorId> summary_for;         // chosen when it was opened
  bool subjects_open = false;                  // of the finding shown: all of them
  const void* subjects_of = nullptr;           // compared, never followed
  int colour_axis = -1;  // tiles are coloured by: -1 their writer, else a mesh axis
  ColourBy colour_by = ColourBy::kWriter;   // beyond the writer
  std::optional<TensorId> tiles_asked_for;  // whose values are being looked at
  std::optional<std::uint32_t> isolated;    // the rank whose tiles stand out
  MenuState menu;
  bool map_has_keys = false;  // arrows move the tile, not the row
  bool fill_open = false;     // another checkpoint to fill from is being named
  bool plan_open = false, palette_open = false, explain_open = false, mesh_open = false;
  std::string palette_text, out, fill_path, open_path, mesh_text;
  int palette_row = 0, palette_first = 0;  // chosen, and the first that is seen
  bool palette_wanted = false;
  PaletteSearch search;  // of the palette
  float plan_height = 420, explain_height = 360, mesh_height = 480,
        certificate_height = 420;  // pixels that the panels took in the last frame
  bool welcome_shown = false;      // in the last frame: its field had the keyboard once
  std::string toast;
  double toast_until = 0;
  std::optional<Action> asked;  // the action whose question is on screen
  bool quit_wanted = false;     // the window was told to close
  bool quit = false;
  bool close_wanted = false;  // this tab was told to close
  HabitsState habits;
  TabOrder tabs;
};

// A panel lies above the desk; the palette, which may lie above that, is none.
bool panel_is_open(const UiState& state);
void close_panels(UiState& state);
// Either of them has the keys.
bool is_covered(const UiState& state);

// What tiles are coloured by, of the mesh as it is known.
Colouring colouring_of(const Frame& frame, const UiState& state);
// The chunk that the right column describes and every picture frames.
std::optional<ChunkId> current_tile(const Frame& frame, const UiState& state);

}  // namespace shw
