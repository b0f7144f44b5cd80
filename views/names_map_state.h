#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/ids.h"
#include "core/verbs/paired_names.h"

namespace shw {

inline constexpr std::uint8_t kErrorMark = 3, kWarningMark = 2;  // as in Digest::marks

struct NamesMapState {
  bool open = false;
  bool wanted = false;                         // opens it as soon as its comparison is there
  std::weak_ptr<const verbs::PairedNames> of;  // whose row this is
  std::optional<std::size_t> row;              // the one that is unfolded
  // By row: worst severity + 1 of findings about its tensors of the open checkpoint, 0: none.
  std::vector<std::uint8_t> marks;
  std::weak_ptr<const std::vector<std::uint8_t>> marks_of;  // Digest::marks that they were made of
  // Of the difference that is shown: its row, and its tensors in it; looked for once per
  // difference.
  std::optional<std::size_t> pair_of, pair_row;
  std::size_t pair_index = 0;
  std::optional<TensorId> tensor;         // chosen while it was open
  std::optional<std::size_t> difference;  // the same
  bool is_row_wanted = false;             // scrolls to it in the next frame
  float detail = 0;                       // pixels that its unfolded part took
};

}  // namespace shw
