// What a comparison with the reference found, as bytes: the members of a team tell each other, and
// what one process alone finds goes the same way.
#pragma once

#include <string>

#include "core/base/packed.h"
#include "core/facts/reference/block_order.h"
#include "core/facts/reference/tile_places.h"
#include "core/facts/reference/transposed_law.h"

namespace shw {

void add(Packer& words, const TilePlaces& places);
Result<TilePlaces> unpacked_places(Unpacker& words);

void add(Packer& words, const BlockOrder& order);
Result<BlockOrder> unpacked_order(Unpacker& words);

void add(Packer& words, const OrientationFound& found);
Result<OrientationFound> unpacked_orientation(Unpacker& words);

}  // namespace shw
