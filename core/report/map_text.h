// The tile map of one tensor for a terminal: boxes with writer ranks, saved beside expected at one
// scale.
#pragma once

#include <string>

#include "core/facts/storage/filled.h"
#include "core/report/listing.h"
#include "core/report/palette.h"
#include "core/tiles/slice.h"

namespace shw {

// `expected` may be null. Without a palette tiles stand on no colour.
std::string map_to_text(const std::string& fqn, const LaidTensor& saved, const LaidTensor* expected,
                        const TextStyle& style, const Palette* palette = nullptr);
// {"schema", "fqn", "view": {...}, "saved": {"shape", "tiles": [{"offsets", "sizes", "writer"}]},
// "expected": the same or null}
// `filled`: what an earlier repair filled in it; may be null.
std::string map_to_json(const std::string& fqn, const LaidTensor& saved, const LaidTensor* expected,
                        const FilledTensor* filled = nullptr);

}  // namespace shw
