// Contiguous pieces of equal length, as saved and as expected.
#pragma once

#include <cstring>

#include "core/base/bytes.h"
#include "core/maps/joined_rows.h"

namespace shw {

struct PieceComparison {
  BytesView there, expected;
  std::size_t length = 0;  // of a piece, in bytes

  std::size_t count() const { return length == 0 ? 0 : there.size() / length; }
  bool is(std::size_t here, std::size_t of) const {
    return std::memcmp(there.data() + here * length, expected.data() + of * length, length) == 0;
  }
};

// By saved piece: the expected piece with the same bytes. Every expected piece is used once if
// possible. Empty if a saved piece matches none.
RowOrder match_pieces(const PieceComparison& sides);

}  // namespace shw
