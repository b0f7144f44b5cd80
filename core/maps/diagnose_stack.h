// Finds cells of a stacked tensor (layers or experts) that have another cell's elements.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/maps/loaded_tensor.h"

namespace shw {

// Describes layers or experts in a wrong order; nullopt if the order is right or a cell has foreign
// content.
std::optional<std::string> diagnose_stack_order(const LoadedTensor& there,
                                                const LoadedTensor& expected,
                                                const RowLayout& layout);

// Like diagnose_stack_order(), for single parts of the joined rows: "in gate_proj: experts 1 and 2
// are swapped".
std::optional<std::string> diagnose_stack_of_parts(const LoadedTensor& there,
                                                   const LoadedTensor& expected,
                                                   const RowLayout& layout);

// Appends every row of a cell to the bytes of its part. `part_of`: by row (parts_of_rows()).
void append_rows_by_part(BytesView cell, const std::vector<std::size_t>& part_of,
                         std::vector<Bytes>& parts);
// "in q_proj and k_proj: TEXT; in v_proj: TEXT". `names`: by text.
std::string texts_with_names(const std::map<std::string, std::vector<std::string>>& names);

// "in layer 1", "in layers 0 and 2"; empty for all cells. `cells` must be sorted.
std::string stack_position_text(const std::vector<std::size_t>& cells, const Extents& lead,
                                const RowLayout& layout);

}  // namespace shw
