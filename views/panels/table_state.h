#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/base/ids.h"
#include "core/verbs/ui_settings.h"

namespace shw {

struct TableState {
  bool open = false;
  // In units of Frame::px, by TableColumn; 0: default. The name column takes the rest.
  verbs::ColumnWidths widths{};
  std::optional<TensorId> shown;  // the row that was last scrolled to
  bool moved_by_key = false;      // the next selection comes from an arrow key in the table
  // While a border is dragged: its column and original position.
  std::optional<std::size_t> dragged;
  float dragged_from = 0, mouse_from = 0;
};

}  // namespace shw
