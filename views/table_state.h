#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/base/ids.h"
#include "core/verbs/desk_settings.h"

namespace shw {

struct TableState {
  bool open = false;
  // Units of Frame::px, by TableColumn; 0: the standard one. The names get what the others leave.
  verbs::ColumnWidths widths{};
  std::optional<TensorId> shown;  // the row that was last scrolled to
  bool moved_by_key = false;      // the next selection comes from an arrow in the table
  // While a border is dragged: which column's, and where it stood.
  std::optional<std::size_t> dragged;
  float dragged_from = 0, mouse_from = 0;
};

}  // namespace shw
