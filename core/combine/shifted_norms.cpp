#include "core/combine/shifted_norms.h"

#include <string>
#include <utility>

#include "core/facts/values/added_tensor.h"
#include "core/model/state_names.h"

namespace shw {

bool is_norm_weight(std::string_view fqn) {
  if (fqn.ends_with("norm_weight")) return true;  // layer_norm_weight of fused modules
  if (!fqn.ends_with(".weight")) return false;
  fqn.remove_suffix(std::string_view(".weight").size());
  const std::string_view module = fqn.substr(fqn.rfind('.') + 1);
  return module.find("norm") != module.npos || module.starts_with("ln_");
}

bool is_norm_weight_or_master(std::string_view fqn) {
  const auto state = parse_state_fqn(fqn);
  if (!state) return is_norm_weight(fqn);
  return role_of_kind(state->kind) == StateRole::kMaster && is_norm_weight(state->key);
}

Result<std::shared_ptr<const Checkpoint>> shift_norm_weights(
    std::shared_ptr<const Checkpoint> checkpoint, float shift, Progress* progress) {
  ComputedPart part;
  for (TensorId tensor : checkpoint->tensors()) {
    const Dtype dtype = checkpoint->dtype(tensor);
    if (!is_norm_weight_or_master(checkpoint->fqn(tensor)) || !is_addition_supported(dtype))
      continue;
    part.replaced.insert(tensor);
    part.tensors.push_back(added_tensor(checkpoint, tensor, shift, dtype));
  }
  if (part.tensors.empty())
    return fail(
        ErrorKind::kUnsupported, "holds no norm weights by their names",
        {checkpoint->directory() == nullptr ? std::string() : checkpoint->directory()->name()});
  part.made_of = {checkpoint};
  return add_computed_tensors(std::move(checkpoint), std::move(part), progress);
}

}  // namespace shw
