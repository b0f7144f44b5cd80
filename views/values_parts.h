// Drawing of slice values, for one checkpoint and for two side by side.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "views/ui_state.h"
#include "views/widgets.h"

namespace shw {

// `id`: name of the item; a click zooms in.
void draw_heat_map(Frame& frame, ImDrawList* draw, const verbs::SliceValues& values, ImVec2 at,
                   ImVec2 size, const char* id);
void draw_table(Frame& frame, ImDrawList* draw, const verbs::SliceValues& values, ImVec2 at,
                ImVec2 end);
// A field that goes to an index, the next NaN, a copy for numpy; arrows and pages move the window.
void draw_values_tools(Frame& frame, UiState& state, Column& column,
                       const verbs::SliceValues& values);
// The slice with its window at an index: "[0, 4096, 32]"; nullopt if the tensor has no such one.
std::optional<verbs::ValuesAsk> parse_index(std::string_view text, ExtentsView shape,
                                            const verbs::ValuesAsk& now);
// "np.array([[0, 1], [2, 3]], dtype=np.float32)  # w[0:2, 0:2] float32": the table.
std::string numpy_text(const Checkpoint& checkpoint, const verbs::SliceValues& values);
// The values of A, of B, and B - A.
void draw_side_by_side(Frame& frame, const ValuesLook& look, Column column, float bottom);

}  // namespace shw
