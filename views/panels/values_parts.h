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
Rgba value_colour(const Theme& theme, float value, float greatest);
// True if the table shows the whole slice in this space.
bool table_fits(const Frame& frame, const verbs::SliceValues& values, ImVec2 size);
// True if each cell of a heat map of this size is one element and has room for its number.
bool cells_hold_numbers(const Frame& frame, const verbs::SliceValues& values, ImVec2 size);
// The corner of the cells of a heat map whose rows and columns have indices.
ImVec2 cells_corner(const Frame& frame, const verbs::SliceValues& values, ImVec2 at);
void draw_cell_indices(Frame& frame, ImDrawList* draw, const verbs::SliceValues& values, ImVec2 at,
                       ImVec2 size);
void draw_cell_numbers(Frame& frame, ImDrawList* draw, const verbs::SliceValues& values, ImVec2 at,
                       ImVec2 size);
// A frame around the element that was searched for.
void draw_found_mark(const Frame& frame, ImDrawList* draw, ImVec2 min, ImVec2 max);
// The part of a window whose numbers are on screen, and where.
struct ShownNumbers {
  std::int64_t rows = 0, columns = 0;
  ImVec2 min{0, 0}, max{0, 0};
};
// As many rows and columns as fit.
ShownNumbers draw_table(Frame& frame, ImDrawList* draw, const verbs::SliceValues& values, ImVec2 at,
                        ImVec2 end);
// Tools: an index field, the next NaN, a copy for numpy; arrow and page keys move the window.
void draw_values_tools(Frame& frame, UiState& state, Column& column,
                       const verbs::SliceValues& values);
// Moves the window to an index like "[0, 4096, 32]"; nullopt if the tensor has no such element.
std::optional<verbs::ValuesRequest> parse_index(std::string_view text, ExtentsView shape,
                                                const verbs::ValuesRequest& now);
bool has_nan(const verbs::SliceValues& values);  // its dtype has one
// What F3 searches for in the shown values: a difference of two checkpoints, or NaN.
std::optional<verbs::SearchedValue> search_target_of_f3(const Snapshot& snapshot);
// The table as numpy code: "np.array([[0, 1], [2, 3]], dtype=np.float32)  # w[0:2, 0:2] float32".
std::string numpy_text(const Checkpoint& checkpoint, const verbs::SliceValues& values);
// The wheel above the numbers moves the window by rows, with Shift by columns.
void scroll_values_by_wheel(Frame& frame, const verbs::SliceValues& values,
                            const ShownNumbers& shown);
// Draws the values of A, of B, and B - A.
ShownNumbers draw_side_by_side(Frame& frame, const ShownValues& look, Column column, float bottom);

}  // namespace shw
