// Tiles of a dataset that are compressed by deflate, shuffled or not before that.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/model/format.h"

namespace shw {

// `overhangs`: the tile has rows past the end of its dataset. How many it has with them is said by
// a transform of its storage, "hdf5.rows/64", as long as there are few such numbers: a checkpoint
// has at most 255 kinds of storages.
inline constexpr std::string_view kTileRows = "hdf5.rows/";
inline constexpr std::size_t kMostTileRows = 128;
const Codec& deflated_codec(bool is_shuffled, bool overhangs);

}  // namespace shw
