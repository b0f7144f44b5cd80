#include "core/formats/deepspeed/zero_layout.h"

#include <algorithm>

#include "core/base/checked.h"

namespace shw {

ZeroLayout lay_out_partitions(std::span<const ZeroShape> shapes,
                              std::span<const std::int64_t> alignment, std::uint32_t group,
                              const PartitionRanks& ranks, std::int64_t partition) {
  ZeroLayout layout{.ranks = ranks};
  std::int64_t begin = 0;  // of the parameter, in the concatenated group
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    ZeroParameter parameter{shapes[i].name, shapes[i].name_in_files, shapes[i].shape, group};
    const std::int64_t count = volume(shapes[i].shape).value_or(0);
    std::int64_t end = 0;
    if (__builtin_add_overflow(begin, count, &end)) break;
    for (std::int64_t at = begin; partition > 0 && at < end;) {
      const std::int64_t p = at / partition;
      if (p >= ranks.count) break;
      const std::int64_t until = std::min(end, (p + 1) * partition);
      parameter.parts.push_back({static_cast<std::uint32_t>(ranks.first + p * ranks.step), group,
                                 at - p * partition, at - begin, until - at});
      at = until;
    }
    const std::int64_t gap = i < alignment.size() ? std::max<std::int64_t>(alignment[i], 0) : 0;
    if (__builtin_add_overflow(end, gap, &begin)) break;
    layout.needed = end;
    layout.parameters.push_back(std::move(parameter));
  }
  return layout;
}

ZeroLayout lay_out_stage3(std::span<const ZeroShape> shapes, std::span<const std::int64_t> lengths,
                          std::uint32_t first_group, std::int64_t ranks) {
  ZeroLayout layout{.ranks = {ranks}};
  std::uint32_t group = 0;       // group that contains `begin`
  std::int64_t group_begin = 0;  // total length of the groups before it
  std::int64_t begin = 0;
  for (const ZeroShape& shape : shapes) {
    const std::int64_t count = volume(shape.shape).value_or(0);
    const std::int64_t cut = count / ranks + (count % ranks != 0 ? 1 : 0);
    std::int64_t end = 0;
    if (__builtin_add_overflow(begin, cut, &end)) break;
    while (group + 1 < lengths.size() && begin >= group_begin + lengths[group])
      group_begin += lengths[group++];
    ZeroParameter parameter{shape.name, shape.name_in_files, shape.shape, first_group + group};
    for (std::int64_t rank = 0; rank < ranks && rank * cut < count; ++rank) {
      const std::int64_t own = std::min(cut, count - rank * cut);
      std::int64_t done = 0, before = group_begin;
      for (std::uint32_t g = group; g < lengths.size() && done < own; ++g) {
        const std::int64_t at = begin + done - before;
        const std::int64_t here = std::min(own - done, lengths[g] - at);
        if (here > 0) {
          parameter.parts.push_back(
              {static_cast<std::uint32_t>(rank), first_group + g, at, rank * cut + done, here});
          done += here;
        }
        before += lengths[g];
      }
    }
    begin = layout.needed = end;
    layout.parameters.push_back(std::move(parameter));
  }
  return layout;
}

}  // namespace shw
