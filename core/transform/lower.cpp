#include "core/transform/lower.h"

#include "core/transform/packed_tensor.h"
#include "core/transform/tilings.h"

namespace shw {

Result<ArrangedTensor> arranged_for(const Arrangement& all, const ArrangedEntry& entry,
                                    const WantedForm& form) {
  if (!form.format->traits.one_piece) return tensor_of(all, entry);
  ArrangedEntry in_one_piece = entry;
  in_one_piece.tiling = WholeTiling{};
  return tensor_of(all, in_one_piece);
}

std::vector<std::pair<std::string, Loss>> losses_after(const Arrangement& all) {
  std::vector<std::pair<std::string, Loss>> losses;
  for (const ArrangedEntry& entry : all.tensors) {
    if (entry.made != nullptr) {
      if (!entry.made->loss().boxes.empty()) losses.emplace_back(entry.fqn, entry.made->loss());
    } else if (auto found = all.losses.find(entry.fqn); found != all.losses.end()) {
      losses.emplace_back(entry.fqn, found->second);
    }
  }
  return losses;
}

}  // namespace shw
