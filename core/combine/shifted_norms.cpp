#include "core/combine/shifted_norms.h"

#include <string>
#include <utility>

#include "core/combine/tensor_rows.h"
#include "core/facts/values/computed_tensors.h"
#include "core/model/state_names.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

ComputedTensor shifted(ReadableTensor norm, float shift) {
  ComputedTensor made{.fqn = std::string(norm.checkpoint->fqn(norm.tensor)),
                      .dtype = norm.dtype,
                      .shape = norm.shape,
                      .make = {},
                      .is_rounded = true};
  made.make = [norm = std::move(norm), shift](std::int64_t first,
                                              std::int64_t count) -> Result<Bytes> {
    SHW_TRY(std::vector<float> elements, read_floats(norm, rows_box(norm.shape, first, count)));
    for (float& element : elements) element += shift;
    return rounded_to(norm.dtype, elements);
  };
  return made;
}

}  // namespace

bool is_norm_weight(std::string_view fqn) {
  if (fqn.ends_with("norm_weight")) return true;  // layer_norm_weight of fused modules
  if (!fqn.ends_with(".weight")) return false;
  fqn.remove_suffix(std::string_view(".weight").size());
  const std::string_view module = fqn.substr(fqn.rfind('.') + 1);
  return module.find("norm") != module.npos || module.starts_with("ln_");
}

bool is_shifted_with_norms(std::string_view fqn) {
  const auto state = parse_state_fqn(fqn);
  if (!state) return is_norm_weight(fqn);
  return role_of_kind(state->kind) == StateRole::kMaster && is_norm_weight(state->key);
}

Result<std::shared_ptr<const Checkpoint>> shifted_norms(
    std::shared_ptr<const Checkpoint> checkpoint, float shift, Progress* progress) {
  ComputedPart part;
  for (TensorId tensor : checkpoint->tensors()) {
    const Dtype dtype = checkpoint->dtype(tensor);
    if (!is_shifted_with_norms(checkpoint->fqn(tensor)) || !is_plain_float(dtype) ||
        dtype == Dtype::kFloat64)
      continue;
    part.replaced.insert(tensor);
    part.tensors.push_back(shifted(readable(checkpoint, tensor), shift));
  }
  if (part.tensors.empty())
    return fail(
        ErrorKind::kUnsupported, "holds no norm weights by their names",
        {checkpoint->directory() == nullptr ? std::string() : checkpoint->directory()->name()});
  part.made_of = {checkpoint};
  return with_computed(std::move(checkpoint), std::move(part), progress);
}

}  // namespace shw
