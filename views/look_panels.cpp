#include "views/look_panels.h"

#include <algorithm>

#include "views/actions.h"

namespace shw {
namespace {

constexpr float kLeastWidth = 780;  // offset, sixteen bytes, their letters and what they are

}  // namespace

bool look_is_open(const Frame& frame, const DeskState& state) {
  return state.bytes.open || frame.snapshot.bytes != nullptr;
}

Region look_region(const Frame& frame, Region left, Region centre, Region right) {
  float wanted = frame.px(kLeastWidth);
  if (centre.max.x - centre.min.x >= wanted) return centre;
  if (centre.max.x - left.min.x >= wanted) return {left.min, centre.max};
  return {left.min, right.max};
}

void draw_look(Frame& frame, DeskState& state, Region region) {
  state.map.hovered.reset();  // the map is not there to be pointed at
  draw_bytes(frame, state, region);
}

void close_looks(Frame& frame, DeskState& state) {
  if (!look_is_open(frame, state)) return;
  state.bytes.open = false;
  state.map_has_keys = false;
  if (frame.snapshot.bytes != nullptr || frame.job.looking)
    frame.emit(BytesCommand{BytesCommand::Go::kClose});
}

void draw_look_chips(Frame& frame, DeskState& state, Column& column, bool of_finding) {
  float width = 0;
  const char* id = of_finding ? "finding/bytes" : "tile/bytes";
  if (chip_button(frame, id, column.left, column.y + frame.px(11), "Show the bytes", &width))
    show_bytes(frame, state, of_finding);
  column.y += frame.px(of_finding ? 40 : 32);
}

}  // namespace shw
