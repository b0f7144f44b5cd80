// Why nobody can say which rank stands where on a mesh, in words.
#pragma once

#include <string>

#include "core/facts/check_input.h"

namespace shw {

// Where a spec's mesh names every rank and was still not used, its axes stand in another order.
bool is_order_in_doubt(const CheckInput& input, const Mesh& mesh);
std::string why_no_rank(const CheckInput& input, const Mesh& mesh);

}  // namespace shw
