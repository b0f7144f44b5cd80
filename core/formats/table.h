// The supported formats, one row each. Formats that are only recognised by name are in
// unsupported_formats.h.
//
// A row is defined in its format's folder and listed in table.cpp; a new format needs only this and
// tests. Its Format (core/model/format.h) describes its checkpoints, its Codec
// (core/formats/common/item_reader.h) how to read its bytes.
#pragma once

#include <span>

#include "core/formats/format_row.h"

namespace shw {

// The first row that recognises a directory opens it.
std::span<const FormatRow> formats();

// FormatRow::noted_additions of the checkpoint's format; empty if the format has none.
std::vector<std::string> noted_additions(const Checkpoint& checkpoint);
std::vector<NeededAddition> needed_additions(const Checkpoint& checkpoint);
// FormatRow::tensor_classes; opens the checkpoint's files again.
std::vector<TensorClass> tensor_classes(const Checkpoint& checkpoint);

}  // namespace shw
