#include "core/transform/target_view.h"

#include <cstring>
#include <utility>

#include "core/facts/values/computed_tensors.h"
#include "core/facts/values/quant_numbers.h"
#include "core/facts/values/tensor_pieces.h"
#include "core/transform/part_reader.h"
#include "core/transform/tilings.h"

namespace shw {
namespace {

constexpr std::uint64_t kDecodedForView = std::uint64_t{64} << 20;

Result<Bytes> elements_of(const TargetState& all, const TargetTensor& tensor, const Box& box) {
  const std::size_t width = size_of(tensor.dtype);
  const Extents strides = row_major_strides(box.sizes);
  Bytes elements(static_cast<std::size_t>(volume(box.sizes).value_or(0)) * width);
  PartReader reader(all, kDecodedForView);
  Bytes bytes;
  for (const Part& part : parts_of_tile(tensor, box)) {
    SHW_CHECK(reader.read(part, part.box, bytes));
    Box inside = part.box;
    for (std::size_t d = 0; d < inside.offsets.size(); ++d) inside.offsets[d] -= box.offsets[d];
    each_row(inside, bytes, width, strides, [&](const Extents&, std::int64_t at, BytesView row) {
      std::memcpy(elements.data() + static_cast<std::size_t>(at) * width, row.data(), row.size());
    });
  }
  return elements;
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> target_view(std::shared_ptr<const TargetState> all,
                                                      Progress* progress) {
  ComputedPart part;
  for (const TargetEntry& entry : all->tensors) {
    SHW_TRY(TargetTensor tensor, tensor_of(*all, entry));
    SHW_TRY(const std::vector<Box> holes, holes_in(tensor));
    if (!holes.empty())
      return cannot_make_target(entry.fqn, "some of its elements are nowhere",
                                "`shardwright check` says which.");
    ComputedTensor computed{.fqn = entry.fqn,
                            .dtype = tensor.dtype,
                            .shape = tensor.shape,
                            .make = {},
                            .is_rounded = tensor.is_cast};
    auto held = std::make_shared<const TargetTensor>(std::move(tensor));
    computed.make = [all, held](std::int64_t first, std::int64_t count) {
      return elements_of(*all, *held, rows_box(held->shape, first, count));
    };
    part.tensors.push_back(std::move(computed));
  }
  part.made_of = all->inputs;
  return make_computed_only_checkpoint(*all->source().directory(), std::move(part), progress);
}

}  // namespace shw
