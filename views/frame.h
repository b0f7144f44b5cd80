// What a view gets and what it gives back. A view draws from an immutable Digest; what the person
// does comes out as commands. It holds no pointers between frames, opens no file and waits for
// nothing.
#pragma once

#include <imgui.h>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/session/session.h"
#include "views/digest.h"
#include "views/keys.h"
#include "views/theme.h"
#include "views/tile_layout.h"

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
  std::shared_ptr<const TilePaint> paint = nullptr;  // null: by writer, as the colouring says
  bool after = false;                                // which of the paint's tiles these are
};
struct PaintedLayout {
  TileRequest request;
  TileLayout layout;
  std::vector<Rgba> fills = {};   // of layout.quads
  std::vector<Rgba> pixels = {};  // of the raster; given up once they are a texture
  bool has_pixels = false;
  std::vector<std::uint32_t> bad_pixels = {};  // the first thousands of what is wrong among them
  std::uintptr_t texture = 0;                  // the renderer's number of it
};

// Lays tiles out, at once or beside the frame; a late answer is the last one for that slot, and
// the view stretches it until the right one is there.
class Layouts {
 public:
  virtual ~Layouts() = default;
  virtual const PaintedLayout* get(int slot, const TileRequest& request) = 0;
};

// Where a driven test finds what it clicks: the rectangle of every named item of the last frame.
struct TextMark {
  ImVec4 box, clip;      // where it stands, and what of that is seen
  bool scrolls = false;  // what is cut above or below can be scrolled to
  int layer = 0;         // 0: the desk, 1: an open rail's column, 2: panels above, 3: the tour
  std::string text;
};
struct Marks {
  std::map<std::string, ImVec4, std::less<>> items;  // x0 y0 x1 y1
  bool wants_texts = false;                          // every text that is drawn is noted
  std::vector<TextMark> texts;
  std::string tooltip;  // of the map, in the last frame
};

struct Frame {
  const Digest& digest;
  const Snapshot& snapshot;
  const JobState& job;
  const Theme& theme;
  const Fonts& fonts;
  Layouts& layouts;
  std::vector<Command>& commands;  // out
  std::span<const KeyPress> keys;  // pressed since the last frame
  float scale = 1;
  double now = 0;                         // seconds; only for what fades
  Marks* marks = nullptr;                 // tests
  std::span<const JobState> beside = {};  // jobs that only read, beside `job`
  bool stable = false;                    // a picture is being taken: nothing that depends on time

  float px(float units) const { return std::floor(units * scale + 0.5f); }
  bool anything_runs() const { return job.running || !beside.empty(); }
  bool runs(std::string_view verb) const {
    for (const JobState& each : beside) {
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
