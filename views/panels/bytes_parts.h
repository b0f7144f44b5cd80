// Parts of the byte view.
#pragma once

#include <cstdint>

#include "views/widgets.h"

namespace shw {

Rgba part_colour(const Theme& theme, PartKind kind);
// The record and its parts as a tree; a click goes to the first byte of a part. `chosen`: the byte
// whose part is marked.
void draw_structure(Frame& frame, Column column, const verbs::BytesWindow& window,
                    std::uint64_t chosen, float bottom);

}  // namespace shw
