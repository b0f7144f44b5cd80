#include "core/facts/layout/rank_order_certainty.h"

#include <algorithm>

namespace shw {

bool is_rank_order_uncertain(const CheckInput& input, const Mesh& mesh) {
  const auto& doubted = input.meshes_in_other_rank_order;
  return std::find(doubted.begin(), doubted.end(), mesh) != doubted.end();
}

std::string unknown_rank_reason(const CheckInput& input, const Mesh& mesh) {
  std::string text = "the order of the ranks is not known: ";
  if (is_rank_order_uncertain(input, mesh))
    return text + "the run that saved may have numbered its ranks differently from the mesh " +
           to_text(mesh) + " (give the axes in its order with --mesh)";
  return text + "the mesh " + to_text(mesh) +
         " does not include every rank that wrote (give the right one with --mesh)";
}

}  // namespace shw
