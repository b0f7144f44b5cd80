// One line of a recording with the parts of the view that no command sets: panel, colours, zoom,
// slice and the highlighted rank.
#pragma once

#include <string>
#include <string_view>

#include "views/ui_state.h"

namespace shw {

std::string view_state_to_line(const UiState& state);
// False if the line is not a saved view. `tensor`: the selected tensor.
bool restore_view_from_line(std::string_view line, std::optional<TensorId> tensor, UiState& state);

}  // namespace shw
