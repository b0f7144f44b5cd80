// Pieces of equal length that lie one after the other, as they are and as they were expected.
#pragma once

#include <cstring>

#include "core/base/bytes.h"
#include "core/maps/joined_rows.h"

namespace shw {

struct TwoSides {
  BytesView there, expected;
  std::size_t length = 0;  // of a piece, in bytes

  std::size_t count() const { return length == 0 ? 0 : there.size() / length; }
  bool is(std::size_t here, std::size_t of) const {
    return std::memcmp(there.data() + here * length, expected.data() + of * length, length) == 0;
  }
};

// Where each piece belongs, found by its bytes: every expected piece is used once where that is
// possible. Empty where a piece is found nowhere.
RowOrder found_order(const TwoSides& sides);

}  // namespace shw
