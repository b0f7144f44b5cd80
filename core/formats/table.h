// The formats that are opened, one row each, and those that are only told by name.
//
// A row stands in its format's folder and is listed in table.cpp; that, and its tests, is all that
// a new format takes. What a checkpoint of it is like is said by its Format (core/model/format.h),
// how its bytes are reached by its Codec (core/formats/common/item_reader.h).
#pragma once

#include <span>
#include <string_view>

#include "core/formats/format_row.h"

namespace shw {

// The first row that recognises a directory opens it.
std::span<const FormatRow> formats();

// Recognised and not read.
struct UnreadFormat {
  std::string_view title;  // "an Orbax checkpoint (JAX)"
  bool (*matches)(std::string_view path, std::string_view name);
  std::string_view advice;
};
// The first that matches names it.
std::span<const UnreadFormat> unread_formats();

}  // namespace shw
