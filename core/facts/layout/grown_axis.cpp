#include "core/facts/layout/grown_axis.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked.h"

namespace shw {

std::optional<AxisRelation> relate_axes(ExtentsView saved, ExtentsView expected) {
  if (saved.size() != expected.size()) return std::nullopt;
  std::optional<std::size_t> grown, shrunk;
  for (std::size_t d = 0; d < saved.size(); ++d) {
    if (saved[d] == expected[d]) continue;
    auto& which = saved[d] > expected[d] ? grown : shrunk;
    if (which) return std::nullopt;
    which = d;
  }
  if (!grown || !shrunk) return std::nullopt;
  if (expected[*grown] <= 0 || saved[*grown] % expected[*grown] != 0) return std::nullopt;
  std::int64_t factor = saved[*grown] / expected[*grown];
  if (saved[*shrunk] <= 0 || checked_mul(saved[*shrunk], factor) != expected[*shrunk])
    return std::nullopt;
  return AxisRelation{*grown, *shrunk, factor};
}

bool fits_plain_transpose(ExtentsView expected, const AxisRelation& relation) {
  return checked_mul(expected[relation.grown], relation.factor) == expected[relation.shrunk];
}

bool tiles_allow_relabel(const Checkpoint& checkpoint, TensorId tensor, ExtentsView expected,
                         const AxisRelation& relation) {
  ExtentsView saved = checkpoint.shape(tensor);
  std::int64_t step = expected[relation.grown];
  bool several = false;
  std::optional<std::int64_t> first;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    ExtentsView offsets = checkpoint.offsets(chunk), sizes = checkpoint.sizes(chunk);
    if (!is_inside(offsets, sizes, saved)) return false;
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) continue;
    if (sizes[relation.grown] != step || offsets[relation.grown] % step != 0) return false;
    if (offsets[relation.shrunk] != 0 || sizes[relation.shrunk] != saved[relation.shrunk])
      return false;
    if (!first) first = offsets[relation.grown];
    several = several || offsets[relation.grown] != *first;
  }
  return several;
}

bool is_consolidated(const Checkpoint& checkpoint, TensorId tensor) {
  auto chunks = checkpoint.chunks(tensor);
  return checkpoint.format().traits.has_one_piece_per_tensor && chunks.size() == 1 &&
         same(checkpoint.sizes(chunks[0]), checkpoint.shape(tensor));
}

std::string why_axes_are_not_relabelled(const Checkpoint& checkpoint, TensorId tensor,
                                        ExtentsView expected) {
  auto relation = relate_axes(checkpoint.shape(tensor), expected);
  if (!relation) return "";
  std::string text =
      fmt::format("dim {} is {} times as long and dim {} 1/{} as long, ", relation->grown,
                  relation->factor, relation->shrunk, relation->factor);
  if (!is_consolidated(checkpoint, tensor) &&
      !tiles_allow_relabel(checkpoint, tensor, expected, *relation))
    return text +
           "as after a placement on the wrong axis, but the chunks are not cut that way, so moving "
           "them would not fix it";
  return text +
         "which both a transpose and a placement on the wrong axis produce: it is not known which";
}

}  // namespace shw
