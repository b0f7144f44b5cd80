#include "core/verbs/values/quantised_parts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/facts/names/quant_config.h"
#include "core/facts/names/quant_families.h"

namespace shw::verbs {

std::vector<QuantisedWeight> quantised_weights(const Checkpoint& checkpoint) {
  std::optional<QuantConfig> config;
  if (checkpoint.directory() != nullptr) config = read_quant_config(*checkpoint.directory());
  const CheckInput input{
      .checkpoint = checkpoint, .headers = {}, .data = {}, .object_data = {}, .tilings = {}};
  std::vector<QuantisedWeight> weights;
  std::set<TensorId> taken;
  for (const QuantFamily& family : quant_families(input, config)) {
    for (const QuantPair& pair : family.pairs) {
      QuantisedWeight parts{std::string(family.scheme->title), pair.stem, {pair.weight}};
      for (const auto& beside : pair.beside) {
        if (beside) parts.tensors.push_back(*beside);
      }
      const bool is_new = std::ranges::none_of(
          parts.tensors, [&](TensorId tensor) { return taken.contains(tensor); });
      if (!is_new || parts.tensors.size() < 2) continue;
      taken.insert(parts.tensors.begin(), parts.tensors.end());
      weights.push_back(std::move(parts));
    }
  }
  return weights;
}

std::optional<QuantisedWeight> quantised_parts_of(const Checkpoint& checkpoint, TensorId tensor) {
  for (QuantisedWeight& weight : quantised_weights(checkpoint)) {
    if (std::ranges::find(weight.tensors, tensor) != weight.tensors.end()) return std::move(weight);
  }
  return std::nullopt;
}

}  // namespace shw::verbs
