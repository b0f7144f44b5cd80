// State of the view that is not part of a command: scrolling, zoom, folding, open panels.
// Everything else is in the Session.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "views/frame.h"
#include "views/list_rows.h"
#include "views/map/same_tiles.h"
#include "views/map/tile_paint.h"
#include "views/panels/browser_state.h"
#include "views/panels/bytes_state.h"
#include "views/panels/evidence_state.h"
#include "views/panels/names_map_state.h"
#include "views/panels/palette_search.h"
#include "views/panels/panels_state.h"
#include "views/panels/plan_state.h"
#include "views/panels/run_state.h"
#include "views/panels/save_state.h"
#include "views/panels/table_state.h"
#include "views/panels/values_state.h"
#include "views/panels/write_state.h"
#include "views/tab_order.h"
#include "views/ui_layout.h"

namespace shw {

struct MapState {
  // Tiles that the slice belongs to; weak, so that their address is not reused.
  std::weak_ptr<const TileSet> of;
  Slice slice;
  double zoom = 1, pan_row = 0, pan_column = 0;  // elements at the upper left corner
  bool leads_after = false;  // the pan is of the repaired tensor; other pictures follow its tiles
  TileShifts shifts;         // from that picture to the others
  std::optional<ChunkId> hovered;   // under the mouse, by arithmetic
  std::optional<ChunkId> pinned;    // set by a replay's "hover tile N" instead of the mouse
  std::size_t panels_hidden = 0;    // in the last frame
  std::size_t first_panel = 0;      // if not all pictures fit: index of the first one shown
  std::optional<ChunkId> followed;  // the selection that last moved the slice
};

// View of another tab, applied here once a tensor with that shape is on the map.
struct WantedPlace {
  TensorId tensor{};
  Slice slice;
  double zoom = 1, pan_row = 0, pan_column = 0;
  bool leads_after = false;
};

// Target of a right click, until its menu is drawn.
struct MenuState {
  std::optional<TensorId> tensor;
  std::optional<ChunkId> chunk;  // nullopt: the tensor's row
  bool wanted = false;
};

enum class Action : std::uint8_t;  // views/action.h

// Colouring of the overview's matrix.
enum class MatrixBy : std::uint8_t { kFindings, kDifference, kNan, kNorm, kZeros, kBytes };

struct UiState {
  std::string filter;
  bool filter_wanted = false;                   // focuses the filter in the next frame
  std::set<std::string, std::less<>> folded;    // modules
  std::set<std::string, std::less<>> unfolded;  // runs of layers, by title
  ListRows rows;
  bool rows_moved_by_key = false;  // the next selection comes from an arrow in the list
  std::optional<TensorId> shown;   // the row that was last scrolled to
  SortCommand sort;
  MapState map;
  std::optional<WantedPlace> requested_place;
  // The checkpoint that `has_viewed_files` and `bytes` are about.
  std::weak_ptr<const Checkpoint> last_viewed_checkpoint;
  bool has_viewed_files = false;  // a view of its files was open
  BytesState bytes;
  BrowserState browser;
  ValuesState values;
  TableState table;
  NamesMapState names;
  RunState run;
  MatrixBy matrix_by = MatrixBy::kFindings;
  // What the matrix showed the last time.
  std::weak_ptr<const verbs::CheckpointNumbers> numbers_shown;
  std::weak_ptr<const verbs::ComparedCheckpoints> comparison_shown;

  PlanState plan;  // of the repair panel
  WriteState write;
  SaveState save;  // of the panel over all others
  bool certificate_open = false;
  bool compare_open = false, compare_wanted = false;  // compare_wanted focuses its text field
  std::string compare_path;

  UiLayout layout;
  bool left_rail = false, right_rail = false;     // in the last frame
  bool summary_open = false;                      // shows the overview instead of the tensor
  std::optional<TensorId> summary_for;            // the tensor selected when it was opened
  EvidenceState evidence;                         // of the shown finding
  bool subjects_open = false;                     // shows all subjects of the finding
  const void* subjects_of = nullptr;              // only compared, never dereferenced
  int colour_axis = -1;                           // -1: by writer; otherwise index of a mesh axis
  ColourBy colour_by = ColourBy::kWriter;         // colourings other than by writer and axis
  std::optional<TensorId> requested_tile_values;  // tensor whose tile values are being read
  std::optional<std::uint32_t> isolated;          // the highlighted rank
  MenuState menu;
  bool map_has_keys = false;  // arrow keys select a tile instead of a row
  bool fill_open = false;     // the checkpoint to fill from is being entered
  bool plan_open = false, palette_open = false, explain_open = false, mesh_open = false;
  std::string palette_text, out, fill_path, open_path, mesh_text;
  int palette_row = 0, palette_first = 0;  // selected and first visible row
  bool palette_wanted = false;
  PaletteSearch search;  // of the palette
  float plan_height = 420, explain_height = 360, mesh_height = 480, certificate_height = 420,
        question_height = 0;   // of panels in the last frame, in pixels
  bool welcome_shown = false;  // in the last frame; its field gets the keyboard only once
  std::string toast;
  double toast_until = 0;
  std::weak_ptr<const FailedCommand> failure_dismissed;
  float notice_height = 0;      // in the last frame, in pixels
  std::optional<Action> asked;  // action whose confirmation is shown
  std::string asked_text;       // the question, as it was asked
  bool quit_wanted = false;     // a request to close the window
  bool quit = false;
  bool close_wanted = false;  // a request to close this tab
  PanelsState panel_state;
  TabOrder tabs;
};

// True if a panel covers the window. The palette, which may be above it, does not count.
bool panel_is_open(const UiState& state);
void close_panels(UiState& state);
// True if a panel or the palette has the keyboard.
bool is_covered(const UiState& state);

// The colouring of tiles, using the known mesh.
Colouring colouring_of(const Frame& frame, const UiState& state);
// The chunk shown in the right column and framed in every picture.
std::optional<ChunkId> current_tile(const Frame& frame, const UiState& state);

}  // namespace shw
