#include "core/facts/layout/rank_order_certainty.h"

#include <algorithm>

namespace shw {

bool is_rank_order_uncertain(const CheckInput& input, const Mesh& mesh) {
  const auto& doubted = input.misordered;
  return std::find(doubted.begin(), doubted.end(), mesh) != doubted.end();
}

std::string unknown_rank_reason(const CheckInput& input, const Mesh& mesh) {
  std::string text = "which rank is where is not known: ";
  if (is_rank_order_uncertain(input, mesh))
    return text + "the run that saved need not have counted its ranks in the order of the mesh " +
           to_text(mesh) + " (--mesh names the axes in its order)";
  return text + "the mesh " + to_text(mesh) + " does not name every rank that wrote (--mesh tells)";
}

}  // namespace shw
