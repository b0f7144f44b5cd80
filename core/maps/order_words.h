// Orders in which pieces stand, in words.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/maps/joined_rows.h"

namespace shw {

// `order`: by piece that is there, the piece that was expected. `what`: "row", "column". Nothing
// where every piece stands where it belongs.
std::optional<std::string> moved_in_words(const RowOrder& order, std::string_view what);

// The same of layers and experts, which are few.
std::optional<std::string> counted_in_words(const RowOrder& order, std::string_view what);

}  // namespace shw
