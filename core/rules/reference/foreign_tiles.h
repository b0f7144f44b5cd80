// Chunks whose contents the reference has in another tensor or not at all, while other chunks of
// the tensor match. Found by blocks_permuted.cpp.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "core/facts/facts.h"
#include "core/rules/reference/tiles_exchanged.h"

namespace shw {

// Reports chunks that equal the reference's chunk of another tensor that is displaced too. Returns
// the reported tensors.
std::set<std::string_view> report_swapped_between_tensors(const Facts& facts,
                                                          const std::vector<MovedTiles>& looked,
                                                          std::vector<Finding>& findings);

// Reports ranks whose chunks all differ from the reference while other ranks' chunks of the same
// tensors equal it: their files are from another save. `right`: tensors that equal the reference.
std::set<std::string_view> report_foreign_chunks(const Facts& facts,
                                                 const std::vector<MovedTiles>& looked,
                                                 const std::set<TensorId>& right,
                                                 std::vector<Finding>& findings);

}  // namespace shw
