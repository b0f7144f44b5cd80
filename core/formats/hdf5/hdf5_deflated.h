// Tiles of a dataset that are deflated, with or without shuffling before.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/model/format.h"

namespace shw {

// `overhangs`: the tile has rows beyond the dataset's end. Their total is stored as a transform,
// "hdf5.rows/64", as long as there are few different ones: a checkpoint has at most 255 kinds of
// storages.
inline constexpr std::string_view kTileRows = "hdf5.rows/";
inline constexpr std::size_t kMaxTileRows = 128;
const Codec& deflated_codec(bool is_shuffled, bool overhangs);

}  // namespace shw
