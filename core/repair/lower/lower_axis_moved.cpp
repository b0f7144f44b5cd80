// Shards that were recorded along dim `grown` but belong along dim `shrunk`.
//
// Slab r of the recorded tensor, rows [r * n, (r + 1) * n) of `grown` with n the true extent, is
// shard r of the true tensor. It begins where the shards before it end along `shrunk`. With even
// shards the formula is o -> (.., 0, .., (o_grown / n_grown) * n_shrunk). If the last shard is
// smaller (torch.chunk), only the sum of the widths before it is right. A chunk inside one slab
// keeps its item. A chunk that spans several slabs (a consolidated tensor, saved in one piece) is
// reassembled by the permutation [E, k, n1, n2] -> [E, n1, k, n2], never by a reshape.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked.h"
#include "core/repair/lower/lower.h"

namespace shw {
namespace {

constexpr std::int64_t kMaxShards = 1 << 20;

struct Slabs {
  std::int64_t extent = 1;           // true extent of one slab along `grown`
  std::vector<std::int64_t> begins;  // along `shrunk`, in the true tensor
};

Result<Slabs> find_slabs(const Checkpoint& checkpoint, const AxisMoved& moved) {
  auto refuse = [&](const std::string& why) { return cannot_lower(checkpoint, moved.tensor, why); };
  ExtentsView shape = checkpoint.shape(moved.tensor);
  if (moved.grown >= shape.size() || moved.shrunk >= shape.size() || moved.grown == moved.shrunk ||
      moved.expected.size() != shape.size() || moved.factor < 1) {
    return refuse("the axes in the plan do not exist");
  }
  Slabs slabs;
  slabs.extent = moved.expected[moved.grown];
  if (slabs.extent <= 0 || checked_mul(slabs.extent, moved.factor) != shape[moved.grown])
    return refuse("the grown axis is not a multiple of the expected one");
  // The factor is a number of ranks. A hostile shape could ask for 2^40 pieces.
  if (moved.factor > kMaxShards) return refuse("the factor is larger than any number of ranks");
  std::vector<std::int64_t> widths;
  std::int64_t parts = 0;
  for (ChunkId chunk : checkpoint.chunks(moved.tensor)) {
    ExtentsView offsets = checkpoint.offsets(chunk), sizes = checkpoint.sizes(chunk);
    if (volume(sizes) == 0) continue;
    std::int64_t last = (offsets[moved.grown] + sizes[moved.grown] - 1) / slabs.extent;
    if (last >= moved.factor) return refuse("a chunk is outside the saved shape");
    parts += last - offsets[moved.grown] / slabs.extent;
    if (parts > kMaxShards) return refuse("the chunks span too many shards");
    if (static_cast<std::size_t>(last) >= widths.size())
      widths.resize(static_cast<std::size_t>(last) + 1, 0);
    for (std::int64_t r = offsets[moved.grown] / slabs.extent; r <= last; ++r) {
      std::int64_t& width = widths[static_cast<std::size_t>(r)];
      width = std::max(width, offsets[moved.shrunk] + sizes[moved.shrunk]);
    }
  }
  // Ranks past the end of an uneven split are empty and begin where the tensor ends.
  std::int64_t begin = 0;
  for (std::int64_t width : widths) {
    slabs.begins.push_back(begin);
    auto next = checked_add(begin, width);
    if (!next) return refuse("the shards are larger than a tensor can be");
    begin = *next;
  }
  if (begin != moved.expected[moved.shrunk]) {
    return refuse(fmt::format("the shards have a total width of {}, expected {}", begin,
                              moved.expected[moved.shrunk]));
  }
  return slabs;
}

// Box of `part` (inside slab r) in the coordinates of the true tensor.
Box box_in_true_tensor(const AxisMoved& moved, const Slabs& slabs, Box part, std::int64_t r) {
  part.offsets[moved.grown] -= r * slabs.extent;
  part.offsets[moved.shrunk] += slabs.begins[static_cast<std::size_t>(r)];
  return part;
}

// Splits a chunk that spans slabs [first, last]. Its parts are adjacent along `shrunk` only if the
// chunk is as wide as its slabs; then they form one new chunk, otherwise one chunk each.
void split_chunk(const Checkpoint& checkpoint, const AxisMoved& moved, const Slabs& slabs,
                 ChunkId chunk, PlannedTensor& planned) {
  Box box = box_of(checkpoint, chunk);
  std::int64_t begin = box.offsets[moved.grown], end = begin + box.sizes[moved.grown];
  std::vector<PlannedChunk> parts;
  for (std::int64_t r = begin / slabs.extent; r * slabs.extent < end; ++r) {
    Box part = box;
    part.offsets[moved.grown] = std::max(begin, r * slabs.extent);
    part.sizes[moved.grown] = std::min(end, (r + 1) * slabs.extent) - part.offsets[moved.grown];
    Box source{Extents(box.sizes.size(), 0), part.sizes};
    source.offsets[moved.grown] = part.offsets[moved.grown] - begin;
    PlannedChunk made;
    made.box = box_in_true_tensor(moved, slabs, part, r);
    made.pieces.push_back({chunk, std::move(source), Extents(box.sizes.size(), 0)});
    made.writer = checkpoint.writer(chunk).value_or(0);
    parts.push_back(std::move(made));
  }
  PlannedChunk& first = parts.front();
  std::int64_t right = first.box.offsets[moved.shrunk];
  bool join = true;
  for (const PlannedChunk& part : parts) {
    join = join && part.box.offsets[moved.shrunk] == right &&
           part.box.offsets[moved.grown] == first.box.offsets[moved.grown] &&
           part.box.sizes[moved.grown] == first.box.sizes[moved.grown];
    right += part.box.sizes[moved.shrunk];
  }
  if (!join) {
    std::move(parts.begin(), parts.end(), std::back_inserter(planned.chunks));
    return;
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    Piece piece = std::move(parts[i].pieces.front());
    piece.at[moved.shrunk] = parts[i].box.offsets[moved.shrunk] - first.box.offsets[moved.shrunk];
    first.pieces.push_back(std::move(piece));
  }
  first.box.sizes[moved.shrunk] = right - first.box.offsets[moved.shrunk];
  planned.chunks.push_back(std::move(first));
}

}  // namespace

Result<PlannedTensor> lower_axis_moved(const Checkpoint& checkpoint, const AxisMoved& moved) {
  SHW_TRY(Slabs slabs, find_slabs(checkpoint, moved));
  PlannedTensor planned;
  planned.tensor = moved.tensor;
  planned.shape = moved.expected;
  for (ChunkId chunk : checkpoint.chunks(moved.tensor)) {
    Box box = box_of(checkpoint, chunk);
    // An empty shard covers nothing at any offset, and torch needs no entry for it.
    if (is_empty(box)) continue;
    std::int64_t first = box.offsets[moved.grown] / slabs.extent;
    std::int64_t last = (box.offsets[moved.grown] + box.sizes[moved.grown] - 1) / slabs.extent;
    if (first != last) {
      split_chunk(checkpoint, moved, slabs, chunk, planned);
      continue;
    }
    PlannedChunk relabelled;
    relabelled.box = box_in_true_tensor(moved, slabs, std::move(box), first);
    relabelled.item = chunk;
    relabelled.writer = checkpoint.writer(chunk).value_or(0);
    planned.chunks.push_back(std::move(relabelled));
  }
  return planned;
}

}  // namespace shw
