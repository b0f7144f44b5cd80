#include "core/verbs/quantised_parts.h"

#include <algorithm>

#include "core/facts/names/quant_config.h"
#include "core/facts/names/quant_schemes.h"

namespace shw::verbs {

std::optional<QuantisedParts> quantised_parts_of(const Checkpoint& checkpoint, TensorId tensor) {
  std::optional<QuantConfig> config;
  if (checkpoint.directory() != nullptr) config = read_quant_config(*checkpoint.directory());
  const CheckInput input{
      .checkpoint = checkpoint, .headers = {}, .data = {}, .object_data = {}, .tilings = {}};
  for (const QuantFamily& family : quant_families(input, config)) {
    for (const QuantPair& pair : family.pairs) {
      QuantisedParts parts{std::string(family.scheme->title), pair.stem, {pair.weight}};
      for (const auto& beside : pair.beside) {
        if (beside) parts.tensors.push_back(*beside);
      }
      const bool is_here = std::ranges::find(parts.tensors, tensor) != parts.tensors.end();
      if (is_here && parts.tensors.size() > 1) return parts;
    }
  }
  return std::nullopt;
}

}  // namespace shw::verbs
