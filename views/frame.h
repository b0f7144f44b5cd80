// Input and output of a view. A view draws from an immutable Digest and emits commands
// for user actions. It keeps no pointers between frames, opens no files and never
// blocks.
#pragma once

#include <imgui.h>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/session/session.h"
#include "views/digest.h"
#include "views/keys.h"
#include "views/map/tile_layout.h"
#include "views/open_tabs.h"
#include "views/tab_order.h"
#include "views/theme.h"

namespace shw {

struct Fonts {
  ImFont *text = nullptr, *small = nullptr, *strong = nullptr, *title = nullptr, *head = nullptr;
  ImFont *mono = nullptr, *mono_small = nullptr, *mono_strong = nullptr;
};

struct TileRequest {
  std::shared_ptr<const TileSet> tiles;
  Slice slice;
  TileView view;
  MeshGrid grid;
  Colouring colouring = {};
  std::shared_ptr<const TilePaint> paint = nullptr;  // null: by writer, according to the colouring
  bool after = false;                                // selects the tiles of the paint
};
struct PaintedLayout {
  TileRequest request;
  TileLayout layout;
  std::vector<Rgba> fills = {};   // of layout.quads
  std::vector<Rgba> pixels = {};  // of the raster; freed once uploaded as texture
  bool has_pixels = false;
  std::vector<std::uint32_t> bad_pixels = {};  // the first few thousand wrong pixels among them
  std::uintptr_t texture = 0;                  // number of the texture in the renderer
};

// Computes tile layouts synchronously or in the background; until a new layout is ready, the view
// stretches the last one of that slot.
class Layouts {
 public:
  virtual ~Layouts() = default;
  virtual const PaintedLayout* get(int slot, const TileRequest& request) = 0;
};

// Positions of named items in the last frame, for driven tests.
struct TextMark {
  ImVec4 box, clip;      // position, and its visible part
  bool scrolls = false;  // hidden parts can be scrolled to
  int layer = 0;         // 0: main window, 1: column over a rail, 2: panels, 3: tour
  std::string text;
  // Its triangles in the draw list, for the export as SVG.
  const ImDrawList* list = nullptr;
  int first_index = 0, last_index = 0;
  Rgba colour = 0;
  bool is_mono = false;
};
struct Marks {
  std::map<std::string, ImVec4, std::less<>> items;  // x0 y0 x1 y1
  bool wants_texts = false;                          // record every drawn text
  bool wants_tips = false;                           // record the tip of every control
  std::vector<TextMark> texts;
  std::string tooltip;                                   // of the map, in the last frame
  std::map<std::string, std::string, std::less<>> tips;  // by control: its tooltip
  std::string focused;                                   // the control with the keyboard
  bool has_ring = false;                                 // the focus ring is visible
};

struct Frame {
  const Digest& digest;
  const Snapshot& snapshot;
  const JobState& job;
  const Theme& theme;
  const Fonts& fonts;
  Layouts& layouts;
  std::vector<Command>& commands;  // output
  std::span<const KeyPress> keys;  // pressed since the last frame
  float scale = 1;
  double now = 0;                                  // seconds, only for fades
  Marks* marks = nullptr;                          // for tests
  std::span<const JobState> concurrent_jobs = {};  // concurrent read-only jobs, besides `job`
  TabOrder* tabs = nullptr;                        // the controls that Tab reaches
  bool stable = false;                             // a screenshot: nothing may depend on time
  const OpenTabs* open_tabs = nullptr;             // null: there can be only one
  std::optional<TabRequest> tab_request = {};      // output

  float px(float units) const { return std::floor(units * scale + 0.5f); }
  bool anything_runs() const { return job.running || !concurrent_jobs.empty(); }
  bool runs(std::string_view verb) const {
    for (const JobState& each : concurrent_jobs) {
      if (each.verb == verb) return true;
    }
    return job.running && job.verb == verb;
  }
  bool pressed(KeyPress press) const {
    for (KeyPress k : keys) {
      if (k == press) return true;
    }
    return false;
  }
  void emit(Command command) { commands.push_back(std::move(command)); }
};

}  // namespace shw
