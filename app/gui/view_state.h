// What is shown of a checkpoint that no command says, as one line of a record: panel, colours,
// zoom, slice and the rank that is set apart.
//
//   view panel=table colour=1 axis=-1 matrix=0 rank=3 zoom=2.25 pan=0,64 rows=1 columns=2
//   at=5,0,0
#pragma once

#include <string>
#include <string_view>

#include "views/ui_state.h"

namespace shw {

std::string view_line(const UiState& state);
// False if the line is not a saved view. `tensor`: the selected tensor.
bool show_view(std::string_view line, std::optional<TensorId> tensor, UiState& state);

}  // namespace shw
