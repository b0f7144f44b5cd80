#include "core/transform/lower.h"

#include "core/transform/packed_tensor.h"
#include "core/transform/tilings.h"

namespace shw {

Result<TargetTensor> target_for(const TargetState& all, const TargetEntry& entry,
                                const WantedForm& form) {
  if (!form.format->traits.one_piece) return tensor_of(all, entry);
  TargetEntry in_one_piece = entry;
  in_one_piece.tiling = WholeTiling{};
  return tensor_of(all, in_one_piece);
}

std::vector<std::pair<std::string, Loss>> losses_after(const TargetState& all) {
  std::vector<std::pair<std::string, Loss>> losses;
  for (const TargetEntry& entry : all.tensors) {
    if (entry.made != nullptr) {
      if (!entry.made->loss().boxes.empty()) losses.emplace_back(entry.fqn, entry.made->loss());
    } else if (auto found = all.losses.find(entry.fqn); found != all.losses.end()) {
      losses.emplace_back(entry.fqn, found->second);
    }
  }
  return losses;
}

}  // namespace shw
