// Encodes results of comparisons with the reference as bytes, which the ranks of a team exchange; a
// single process uses the same path.
#pragma once

#include <string>

#include "core/base/encoder.h"
#include "core/facts/reference/block_order.h"
#include "core/facts/reference/tile_places.h"
#include "core/facts/reference/transposed_constraint.h"

namespace shw {

void add(Encoder& payload, const TilePlaces& places);
Result<TilePlaces> decode_tile_places(Decoder& payload);

void add(Encoder& payload, const BlockOrder& order);
Result<BlockOrder> decode_block_order(Decoder& payload);

void add(Encoder& payload, const OrientationFound& found);
Result<OrientationFound> decode_orientation(Decoder& payload);

}  // namespace shw
