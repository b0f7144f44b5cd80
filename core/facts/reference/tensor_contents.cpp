#include "core/facts/reference/tensor_contents.h"

#include <fmt/core.h>

#include <cassert>

#include "core/facts/reference/reference_bytes.h"
#include "core/facts/reference/tile_content.h"

namespace shw {

std::string dtype_and_shape_text(const Checkpoint& checkpoint, TensorId tensor) {
  return std::string(name(checkpoint.dtype(tensor))) + to_text(checkpoint.shape(tensor));
}

Result<std::vector<std::string>> hash_leading_elements(const CheckInput& input,
                                                       const Checkpoint& checkpoint,
                                                       const std::vector<TensorId>& tensors,
                                                       const std::string& step) {
  constexpr std::uint64_t kBeginBytes = 4096;
  const std::vector<ComparisonCost> costs(tensors.size(), {kBeginBytes, kBeginBytes});
  auto begin_of = [&](std::size_t i) -> Result<std::string> {
    TensorBoxes boxes(checkpoint, tensors[i], checkpoint.dtype(tensors[i]), input.progress);
    auto text = boxes.start_of(whole(checkpoint.shape(tensors[i])));
    return text ? dtype_and_shape_text(checkpoint, tensors[i]) + *text : std::string();
  };
  return map_comparisons(input, step, costs, begin_of);
}

Status TensorContents::learn(const std::vector<TensorId>& tensors) {
  std::vector<TensorId> unknown;
  std::vector<ComparisonCost> costs;
  for (TensorId tensor : tensors) {
    if (!known_.try_emplace(tensor).second) continue;
    unknown.push_back(tensor);
    costs.push_back(
        {bytes_of_elements(checkpoint_, tensor), memory_to_read_in_pieces(checkpoint_, tensor)});
  }
  if (unknown.empty()) return {};
  auto find = [&](std::size_t i) -> Result<std::string> { return hash_of(unknown[i]); };
  SHW_TRY(auto found, map_comparisons(input_, "look for layers", costs, find));
  for (std::size_t i = 0; i < unknown.size(); ++i) known_[unknown[i]] = std::move(found[i]);
  return {};
}

const std::string& TensorContents::of(TensorId tensor) const {
  static const std::string kUnread;
  auto found = known_.find(tensor);
  assert(found != known_.end());
  return found == known_.end() ? kUnread : found->second;
}

std::string TensorContents::hash_of(TensorId tensor) const {
  auto pieces = pieces_of(checkpoint_, tensor, Dtype::kUnknown, input_.progress);
  auto sum = pieces ? fingerprint_of(*pieces) : std::nullopt;
  if (!sum) return {};
  return fmt::format("{}{}{}", static_cast<int>(pieces->dtype), to_text(pieces->shape),
                     to_hex(*sum));
}

}  // namespace shw
