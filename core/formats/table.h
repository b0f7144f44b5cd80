// The formats that are opened, one row each. Those that are only told by name: unread.h.
//
// A row stands in its format's folder and is listed in table.cpp; that, and its tests, is all that
// a new format takes. What a checkpoint of it is like is said by its Format (core/model/format.h),
// how its bytes are reached by its Codec (core/formats/common/item_reader.h).
#pragma once

#include <span>

#include "core/formats/format_row.h"

namespace shw {

// The first row that recognises a directory opens it.
std::span<const FormatRow> formats();

// FormatRow::noted_additions of the checkpoint's format; empty where nothing is.
std::vector<std::string> noted_additions(const Checkpoint& checkpoint);
std::vector<NeededAddition> needed_additions(const Checkpoint& checkpoint);

}  // namespace shw
