// Of a tile whose bytes differ from their checksum: the element of which one flipped bit would
// explain it.
#pragma once

#include <optional>
#include <string>

#include "core/facts/facts.h"

namespace shw {

struct FlippedElement {
  // "model.norm.weight [3]: -0.0131 where 0.0131 was: bit 7 of byte 81,923 of __0_0.distcp"
  std::string text;
  double chance = 0;  // that other damage of as many bytes looks like one flipped bit
};

// Nothing where no single bit would, where the record is not the tile's own elements as they are,
// or where it is too long for this to say anything.
std::optional<FlippedElement> flipped_element(const Facts& facts, TensorId tensor, ChunkId chunk,
                                              const DataCheck& check);

}  // namespace shw
