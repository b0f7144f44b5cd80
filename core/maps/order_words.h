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
std::optional<Mistake> moved_in_words(const RowOrder& order, std::string_view what);

// Like moved_in_words(), for layers and experts, of which there are few.
std::optional<std::string> counted_in_words(const RowOrder& order, std::string_view what);

// Each layer or expert has the content of the next, or of the previous one.
std::string off_by_one_in_words(std::string_view what, bool is_next);
// Layer or expert `copy` has the content of `of`, which has it too.
std::string copy_in_words(std::string_view what, std::int64_t copy, std::int64_t of);

}  // namespace shw
