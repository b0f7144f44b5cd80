// Text about the changes and the cost of a repair, shared by the window and `plan --explain`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/repair/run/estimate.h"

namespace shw {

// "2 steps for 3 tensors, 12 tiles. Nothing is lost. No tensor byte moves."
std::string summary_text_of(const Plan& plan);
// "What other ranks had under the name of seed and loader is left out."; empty for an empty list.
std::string left_out_entries_text(const std::vector<std::string>& of_other_ranks);
// "3 items decoded there on the way, at most 900 MB at a time".
std::string decoded_items_text(const Forecast& forecast);
// Label and value of each row: "reads", "3.02 GB".
std::vector<std::pair<std::string, std::string>> estimate_rows(const RepairEstimate& outlook);

}  // namespace shw
