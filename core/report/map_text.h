// The tile map of a tensor for terminals: boxes labelled with writer ranks, saved and expected side
// by side at one scale.
#pragma once

#include <string>

#include "core/facts/storage/filled.h"
#include "core/report/listing.h"
#include "core/report/palette.h"
#include "core/tiles/slice.h"

namespace shw {

// `expected` may be null. Without a palette tiles have no background colours.
std::string map_to_text(const std::string& fqn, const TiledTensor& saved,
                        const TiledTensor* expected, const TextStyle& style,
                        const Palette* palette = nullptr);
// {"schema", "fqn", "view": {...}, "saved": {"shape", "tiles": [{"offsets", "sizes", "writer"}]},
// "expected": the same or null}
// `filled`: elements filled by an earlier repair; may be null.
std::string tensor_map_to_json(const std::string& fqn, const TiledTensor& saved,
                               const TiledTensor* expected, const FilledTensor* filled = nullptr);

}  // namespace shw
