// The step that adds a number to tensors. The sums become an extra input that computes them while
// it is read, so lowering, copying and proving treat them like saved tensors.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/facts/values/added_tensor.h"
#include "core/facts/values/value_reader.h"
#include "core/tensor/cast.h"
#include "core/transform/named_entries.h"

namespace shw {
namespace {

// Elements of a part that are read to find out whether the sums lose anything.
constexpr std::int64_t kMaxTriedElements = std::int64_t{1} << 24;

// All tensors of an input that sums can be made of; nothing is read here.
Result<std::uint32_t> add_computed_input(TargetState& all, const AddedInput& wanted) {
  for (const AddedInput& one : all.added) {
    if (one.of == wanted.of && one.value == wanted.value && one.is_float32 == wanted.is_float32)
      return one.input;
  }
  const std::shared_ptr<const Checkpoint> of = all.inputs[wanted.of];
  if (of->directory() == nullptr) return fail(ErrorKind::kUsage, "the checkpoint has no directory");
  ComputedPart part;
  for (const TensorId tensor : of->tensors()) {
    const Dtype dtype = of->dtype(tensor);
    if (is_addition_supported(dtype))
      part.tensors.push_back(
          added_tensor(of, tensor, wanted.value, wanted.is_float32 ? Dtype::kFloat32 : dtype));
  }
  part.made_of = {of};
  SHW_TRY(auto made, make_computed_only_checkpoint(*of->directory(), std::move(part), nullptr));
  AddedInput added = wanted;
  added.input = static_cast<std::uint32_t>(all.inputs.size());
  all.inputs.push_back(std::move(made));
  all.added.push_back(added);
  return added.input;
}

bool casts_keep_values(const Part& part) {
  Dtype now = part.saved;
  for (const Dtype to : part.casts) {
    if (!can_cast(now, to) || !keeps_every_value(to, now)) return false;
    now = to;
  }
  return true;
}

// The box of the saved tensor that a part is made of.
Box box_of_part(const Part& part, const Extents& first) {
  Box box{first, Extents(first.size(), 1)};
  for (std::size_t d = 0; d < part.order.size(); ++d) {
    if (part.order[d] >= 0) box.sizes[static_cast<std::size_t>(part.order[d])] = part.box.sizes[d];
  }
  return box;
}

Status add_to_constant(const TargetTensor& tensor, float value, FromConstant& constant) {
  const auto* bytes = reinterpret_cast<const std::byte*>(constant.bits.data());
  const BytesView element(bytes, size_of(tensor.dtype));
  const double sum = value_at(tensor.dtype, element, 0) + static_cast<double>(value);
  const bool is_padding = constant.is_padding;
  SHW_TRY(constant, constant_of(tensor.dtype, sum));
  constant.is_padding = is_padding;
  return {};
}

// The part as a box of the sums. Whether `value` taken off gives its elements back to the bit.
Result<bool> add_to_part(TargetState& all, const TargetTensor& tensor, float value, Part& part) {
  if (auto* constant = std::get_if<FromConstant>(&part.from)) {
    SHW_CHECK(add_to_constant(tensor, value, *constant));
    return true;
  }
  const auto* chunk = std::get_if<FromChunk>(&part.from);
  const bool is_sum = chunk != nullptr &&
                      std::any_of(all.added.begin(), all.added.end(),
                                  [&](const AddedInput& one) { return one.input == chunk->input; });
  if (chunk == nullptr || part.scaling || is_sum || !casts_keep_values(part) ||
      !is_addition_supported(part.saved))
    return step_error(tensor.fqn,
                      "was computed, rounded or restored before a number is added to it");
  if (tensor.dtype != part.saved && tensor.dtype != Dtype::kFloat32)
    return step_error(tensor.fqn,
                      fmt::format("was cast to {} before a number is added to it: only a "
                                  "cast to float32 may come first",
                                  name(tensor.dtype)));
  const std::shared_ptr<const Checkpoint> of = all.inputs[chunk->input];
  const TensorId saved = of->tensor_of(chunk->chunk);
  AddedInput wanted{.of = chunk->input, .value = value};
  wanted.is_float32 = tensor.dtype == Dtype::kFloat32;
  SHW_TRY(const std::uint32_t input, add_computed_input(all, wanted));
  const Checkpoint& sums = *all.inputs[input];
  const auto made = sums.find(of->fqn(saved));
  if (!made || sums.chunks(*made).size() != 1)
    return step_error(tensor.fqn, "cannot be computed with");
  const ExtentsView offsets = of->offsets(chunk->chunk);
  for (std::size_t d = 0; d < part.first.size(); ++d) part.first[d] += offsets[d];
  const Box box = box_of_part(part, part.first);
  const bool is_exact = volume(box.sizes).value_or(kMaxTriedElements + 1) <= kMaxTriedElements &&
                        is_added_exactly(*of, saved, box, value, tensor.dtype);
  part.from = FromChunk{input, *sums.chunks(*made).begin()};
  part.saved = tensor.dtype;
  part.casts.clear();
  return is_exact;
}

Status add_number_to(TargetState& all, std::size_t entry, float value) {
  SHW_TRY(TargetTensor tensor, copy_of_entry(all, entry));
  if (!is_addition_supported(tensor.dtype))
    return step_error(tensor.fqn, fmt::format("is {}, and numbers are added to floating-point "
                                              "tensors of 16 and 32 bits",
                                              name(tensor.dtype)));
  bool is_exact = true;
  for (Part& part : tensor.parts) {
    SHW_TRY(const bool is_part_exact, add_to_part(all, tensor, value, part));
    is_exact = is_exact && is_part_exact;
  }
  tensor.is_cast = tensor.is_cast || !is_exact;
  replace_entry_tensor(all, entry, std::move(tensor));
  return {};
}

}  // namespace

Status apply(TargetState& all, const AddStep& step) {
  const auto value = static_cast<float>(step.value);
  if (!std::isfinite(value) || static_cast<double>(value) != step.value)
    return fail(ErrorKind::kUsage,
                fmt::format("{} is not a number that float32 holds exactly", step.value));
  if (value == 0) return {};
  SHW_TRY(const auto entries, entries_named(all, step.tensors));
  for (const std::size_t entry : entries) SHW_CHECK(add_number_to(all, entry, value));
  return {};
}

}  // namespace shw
