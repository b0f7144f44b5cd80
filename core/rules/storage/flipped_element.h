// The element in which a single flipped bit would explain a chunk's checksum
// mismatch.
#pragma once

#include <optional>
#include <string>

#include "core/facts/facts.h"

namespace shw {

struct FlippedElement {
  // "model.norm.weight [3]: -0.0131 where 0.0131 was: bit 7 of byte 81,923 of __0_0.distcp"
  std::string text;
  double chance = 0;  // probability that other damage looks like one flipped bit
};

// nullopt if no single bit explains it, if the record is not the chunk's verbatim elements, or if
// it is too long to be conclusive.
std::optional<FlippedElement> flipped_element(const Facts& facts, TensorId tensor, ChunkId chunk,
                                              const DataCheck& check);

}  // namespace shw
