// Describes the order of pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/maps/joined_rows.h"
#include "core/maps/mistake.h"

namespace shw {

// `order`: by saved piece, the piece that was expected there. `what`: "row", "column". nullopt if
// every piece is in its place.
std::optional<Mistake> moved_pieces_mistake(const RowOrder& order, std::string_view what);

// Text like "layers 3 and 4 are swapped", which counts layers or experts one by one; for short
// orders. nullopt if every layer is in its place.
std::optional<std::string> layer_order_text(const RowOrder& order, std::string_view what);

// Text for an order where every layer or expert holds the content of the next one (`is_next`) or of
// the previous one.
std::string off_by_one_text(std::string_view what, bool is_next);
// Text for a layer or expert `copy` whose content equals that of layer `of`.
std::string copied_layer_text(std::string_view what, std::int64_t copy, std::int64_t of);

}  // namespace shw
