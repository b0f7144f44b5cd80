// Tiles of a dataset that are compressed by deflate, shuffled or not before that.
#pragma once

#include "core/model/format.h"

namespace shw {

// `overhangs`: the tile has rows past the end of its dataset.
const Codec& deflated_codec(bool is_shuffled, bool overhangs);

}  // namespace shw
