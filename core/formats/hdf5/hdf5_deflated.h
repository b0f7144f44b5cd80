// Tiles of a dataset that are compressed by deflate, shuffled or not before that.
#pragma once

#include "core/model/format.h"

namespace shw {

const Codec& deflated_codec(bool is_shuffled);

}  // namespace shw
