#include "core/combine/averaged.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/base/words.h"
#include "core/combine/tensor_rows.h"
#include "core/facts/names/quant_config.h"
#include "core/facts/values/computed_tensors.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

using Checkpoints = std::vector<std::shared_ptr<const Checkpoint>>;

std::string name_of(const Checkpoint& checkpoint) {
  return checkpoint.directory() == nullptr ? std::string() : checkpoint.directory()->name();
}

tl::unexpected<Error> averaging_error(const Checkpoint& in, std::string why, std::string_view fqn,
                                      std::string advice = {}) {
  return fail(ErrorKind::kUnsupported, std::move(why),
              Place{.file = name_of(in), .tensor = std::string(fqn)}, std::move(advice));
}

bool can_be_summed(Dtype dtype) {
  return is_plain_float(dtype) && dtype != Dtype::kFloat64;
}

Status refuse_quantised(const Checkpoint& checkpoint) {
  const bool has_config =
      checkpoint.directory() != nullptr && read_quant_config(*checkpoint.directory()).has_value();
  for (TensorId tensor : checkpoint.tensors()) {
    const Dtype dtype = checkpoint.dtype(tensor);
    const bool is_narrow = name(dtype).starts_with("float") && !is_plain_float(dtype);
    if (!is_narrow && !has_config) continue;
    return averaging_error(checkpoint, "is quantised: scaled numbers cannot be averaged",
                           checkpoint.fqn(tensor), "--dequantise decodes the weights first.");
  }
  return {};
}

// Finds the tensor with this name in every checkpoint.
Result<std::vector<ReadableTensor>> tensor_in_each_checkpoint(const Checkpoints& checkpoints,
                                                              TensorId first) {
  const Checkpoint& own = *checkpoints.front();
  std::vector<ReadableTensor> all;
  for (const auto& one : checkpoints) {
    const auto found = one->find(own.fqn(first));
    if (!found)
      return averaging_error(*one, "is missing, though the first checkpoint has it", own.fqn(first),
                             "`shardwright diff` lists the names that differ; --leave-out PATTERN "
                             "leaves a tensor out of all of them.");
    if (!std::ranges::equal(one->shape(*found), own.shape(first)))
      return averaging_error(*one,
                             fmt::format("is {}, and {} in the first checkpoint",
                                         to_text(one->shape(*found)), to_text(own.shape(first))),
                             own.fqn(first));
    if (can_be_summed(one->dtype(*found)) != can_be_summed(own.dtype(first)))
      return averaging_error(*one,
                             fmt::format("is {}, and {} in the first checkpoint",
                                         name(one->dtype(*found)), name(own.dtype(first))),
                             own.fqn(first));
    all.push_back(readable(one, *found));
  }
  return all;
}

Result<std::vector<float>> sum_rows(const std::vector<ReadableTensor>& tensors,
                                    const std::vector<double>& weights, std::int64_t first,
                                    std::int64_t count) {
  const Box box = rows_box(tensors.front().shape, first, count);
  std::vector<double> sums;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    SHW_TRY(const std::vector<float> elements, read_floats(tensors[i], box));
    sums.resize(elements.size(), 0);
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += weights[i] * double{elements[j]};
  }
  return std::vector<float>(sums.begin(), sums.end());
}

ComputedTensor averaged_tensor(std::vector<ReadableTensor> tensors, std::vector<double> weights) {
  const ReadableTensor& first = tensors.front();
  ComputedTensor made{.fqn = std::string(first.checkpoint->fqn(first.tensor)),
                      .dtype = first.dtype,
                      .shape = first.shape,
                      .make = {},
                      .is_rounded = true};
  made.make = [tensors = std::move(tensors), weights = std::move(weights), dtype = made.dtype](
                  std::int64_t begin, std::int64_t count) -> Result<Bytes> {
    SHW_TRY(const std::vector<float> sums, sum_rows(tensors, weights, begin, count));
    return rounded_to(dtype, sums);
  };
  return made;
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> average_checkpoints(
    const Checkpoints& checkpoints, const std::vector<double>& weights,
    const std::set<std::string, std::less<>>& aside, Progress* progress) {
  assert(!checkpoints.empty() && checkpoints.size() == weights.size());
  const Checkpoint& first = *checkpoints.front();
  ComputedPart part;
  for (const auto& one : checkpoints) {
    SHW_CHECK(refuse_quantised(*one));
    for (TensorId tensor : one->tensors()) {
      if (!first.find(one->fqn(tensor)) && !aside.contains(one->fqn(tensor)))
        return averaging_error(*one, "is not in the first checkpoint", one->fqn(tensor));
    }
  }
  for (TensorId tensor : first.tensors()) {
    if (aside.contains(first.fqn(tensor))) continue;
    SHW_TRY(std::vector<ReadableTensor> same, tensor_in_each_checkpoint(checkpoints, tensor));
    if (!can_be_summed(first.dtype(tensor))) continue;
    part.replaced.insert(tensor);
    part.tensors.push_back(averaged_tensor(std::move(same), weights));
  }
  if (part.tensors.empty())
    return averaging_error(first, "holds no floating-point tensor to average", {});
  part.made_of = checkpoints;
  return add_computed_tensors(checkpoints.front(), std::move(part), progress);
}

}  // namespace shw
