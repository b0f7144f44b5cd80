// Describes the order of pieces.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/maps/joined_rows.h"
#include "core/maps/mistake.h"

namespace shw {

// `order`: by saved piece, the piece that was expected there. `what`: "row", "column". nullopt if
// every piece is in its place.
std::optional<Mistake> moved_in_words(const RowOrder& order, std::string_view what);

// Like moved_in_words(), for layers and experts, of which there are few.
std::optional<std::string> counted_in_words(const RowOrder& order, std::string_view what);

}  // namespace shw
