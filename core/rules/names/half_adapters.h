// Adapters that lack one of the two matrices of LoRA, one of the two factors of LoKr, or an alpha.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/facts/facts.h"
#include "core/model/finding.h"

namespace shw {

// Modules of LoKr that have one of their two factors, each whole or as the product of two matrices.
struct LokrHalves {
  std::size_t modules = 0;  // all of LoKr
  std::vector<TensorId> halves = {};
  std::vector<std::string> missing = {};  // "layers.0.q_proj.lokr_w2", as many as halves
};
LokrHalves lokr_halves(const Facts& facts);

void find_half_adapters(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
