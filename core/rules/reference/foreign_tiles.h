// Tiles that the reference has in another tensor or nowhere, where others of the same tensors hold
// what it has: whose they are. What finds them is in blocks_permuted.cpp.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "core/facts/facts.h"
#include "core/rules/reference/tiles_exchanged.h"

namespace shw {

// Tiles that hold what the reference has at a tile of another tensor, which is not in its place
// either. Which tensors were told of.
std::set<std::string_view> report_between(const Facts& facts, const std::vector<MovedTiles>& looked,
                                          std::vector<Finding>& findings);

// Ranks of which all is other than in the reference, where all that other ranks wrote of the same
// tensors is the reference's: their files are of another save. `right` hold the reference's values.
std::set<std::string_view> report_foreign(const Facts& facts, const std::vector<MovedTiles>& looked,
                                          const std::set<TensorId>& right,
                                          std::vector<Finding>& findings);

}  // namespace shw
