#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/ids.h"
#include "core/verbs/names/paired_names.h"

namespace shw {

inline constexpr std::uint8_t kErrorMark = 3, kWarningMark = 2;  // as in Digest::marks

struct NamesMapState {
  bool open = false;
  bool wanted = false;                         // opens it as soon as the comparison is finished
  std::weak_ptr<const verbs::PairedNames> of;  // the map that `row` refers to
  std::optional<std::size_t> row;              // the unfolded row
  // By row: worst severity + 1 of findings about its tensors in the open checkpoint; 0: none.
  std::vector<std::uint8_t> marks;
  // The Digest::marks they were computed from.
  std::weak_ptr<const std::vector<std::uint8_t>> marks_of;
  // Row of the shown difference, and the index of its tensors in it; found once per difference.
  std::optional<std::size_t> pair_of, pair_row;
  std::size_t pair_index = 0;
  std::optional<TensorId> tensor;         // selected while it was open
  std::optional<std::size_t> difference;  // selected while it was open
  bool is_row_wanted = false;             // scrolls to the row in the next frame
  float detail = 0;                       // height of the unfolded part in pixels
};

}  // namespace shw
