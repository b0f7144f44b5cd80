#include "core/transform/lower.h"

#include "core/transform/packed_tensor.h"
#include "core/transform/tilings.h"

namespace shw {

namespace {

TargetTensor as_saved(const TargetState& all, TensorId tensor) {
  const Checkpoint& source = all.source();
  TargetTensor out;
  out.fqn = source.fqn(tensor);
  out.dtype = source.dtype(tensor);
  out.requires_grad = source.requires_grad(tensor);
  out.shape = copy_of(source.shape(tensor));
  out.path.assign(source.path(tensor).begin(), source.path(tensor).end());
  out.before = tensor;
  if (auto loss = all.losses.find(out.fqn); loss != all.losses.end()) out.loss = loss->second;
  out.tiles.reserve(source.chunks(tensor).size());
  for (ChunkId chunk : source.chunks(tensor))
    out.tiles.push_back({box_of(source, chunk), source.writer(chunk).value_or(0), chunk});
  return out;
}

}  // namespace

Result<TargetTensor> target_for(const TargetState& all, const TargetEntry& entry,
                                const ResultFormat& form) {
  if (form.keeps_files)
    return entry.made == nullptr ? as_saved(all, entry.as_saved) : entry.made->unpacked();
  if (!form.format->traits.has_one_piece_per_tensor) return tensor_of(all, entry);
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
