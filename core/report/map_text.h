// The tile map of one tensor for a terminal: boxes with writer ranks, saved beside expected at one
// scale.
#pragma once

#include <string>

#include "core/facts/filled.h"
#include "core/report/listing.h"
#include "core/tiles/slice.h"

namespace shw {

// `expected` may be null.
std::string map_to_text(const std::string& fqn, const LaidTensor& saved, const LaidTensor* expected,
                        const TextStyle& style);
// {"schema", "fqn", "view": {...}, "saved": {"shape", "tiles": [{"offsets", "sizes", "writer"}]},
// "expected": the same or null}
// `filled`: what an earlier repair filled in it; may be null.
std::string map_to_json(const std::string& fqn, const LaidTensor& saved, const LaidTensor* expected,
                        const FilledTensor* filled = nullptr);

// One picture as lines of equal width. `scale_rows` and `scale_columns` are the extents that fill
// `lines` and `columns`: the same for two pictures makes them comparable.
std::vector<std::string> draw_slice(const TileSlice& slice, std::int64_t scale_rows,
                                    std::int64_t scale_columns, int lines, int columns, bool utf8);

}  // namespace shw
