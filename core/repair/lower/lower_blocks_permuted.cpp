// Rows that are complete but in a wrong order. If every chunk's rows stay together, only its box
// changes. Otherwise the boxes stay and the chunks are reassembled.
#include <algorithm>

#include "core/base/checked.h"
#include "core/repair/lower/lower.h"
#include "core/tensor/block_orders.h"

namespace shw {
namespace {

struct Permutation {
  std::size_t dim = 0;
  std::int64_t block = 1;
  const std::vector<std::int64_t>& to_disk;  // true block -> block on disk
  std::vector<std::int64_t> true_block_of;   // block on disk -> true block
};

Result<Permutation> check_permutation(const Checkpoint& checkpoint, const BlocksPermuted& given) {
  auto refuse = [&](const std::string& why) { return cannot_lower(checkpoint, given.tensor, why); };
  ExtentsView shape = checkpoint.shape(given.tensor);
  auto blocks = static_cast<std::int64_t>(given.order.size());
  if (given.dim >= shape.size() || given.block < 1 ||
      checked_mul(blocks, given.block) != shape[given.dim]) {
    return refuse("the blocks do not cover the dimension");
  }
  if (!is_permutation_of_indices(given.order)) return refuse("the block order names a block twice");
  return Permutation{given.dim, given.block, given.order, inverse_of(given.order)};
}

// New position of rows [begin, end) if they stay together, otherwise -1.
std::int64_t row_destination(const std::vector<std::int64_t>& map, std::int64_t block,
                             std::int64_t begin, std::int64_t end) {
  std::int64_t first = begin / block, last = (end - 1) / block;
  for (std::int64_t b = first; b < last; ++b) {
    auto i = static_cast<std::size_t>(b);
    if (map[i + 1] != map[i] + 1) return -1;
  }
  return map[static_cast<std::size_t>(first)] * block + begin % block;
}

bool relabel_all(const Checkpoint& checkpoint, const BlocksPermuted& given,
                 const Permutation& permutation, PlannedTensor& planned) {
  for (ChunkId chunk : checkpoint.chunks(given.tensor)) {
    Box box = box_of(checkpoint, chunk);
    std::int64_t begin = box.offsets[given.dim], end = begin + box.sizes[given.dim];
    std::int64_t to =
        is_empty(box) ? begin : row_destination(permutation.true_block_of, given.block, begin, end);
    if (to < 0) {
      planned.chunks.clear();
      return false;
    }
    box.offsets[given.dim] = to;
    PlannedChunk relabelled;
    relabelled.box = std::move(box);
    relabelled.item = chunk;
    relabelled.writer = checkpoint.writer(chunk).value_or(0);
    planned.chunks.push_back(std::move(relabelled));
  }
  return true;
}

// Adds a piece for every part of `wanted` (a box of the recorded tensor) in the chunks on disk;
// `at` is the position of `wanted` in the new chunk.
void add_pieces(const std::vector<Box>& saved, Checkpoint::ChunkRange chunks, const Box& wanted,
                const Extents& at, PlannedChunk& made) {
  for (std::size_t i = 0; i < saved.size(); ++i) {
    auto common = intersect(saved[i], wanted);
    if (!common) continue;
    Piece piece{chunks[static_cast<std::uint32_t>(i)], Box{common->offsets, common->sizes}, at};
    for (std::size_t d = 0; d < at.size(); ++d) {
      piece.source.offsets[d] -= saved[i].offsets[d];
      piece.at[d] += common->offsets[d] - wanted.offsets[d];
    }
    made.pieces.push_back(std::move(piece));
  }
}

PlannedChunk put_together(const Checkpoint& checkpoint, const Permutation& permutation,
                          const std::vector<Box>& saved, Checkpoint::ChunkRange chunks,
                          std::uint32_t index) {
  PlannedChunk made;
  made.box = saved[index];
  made.writer = checkpoint.writer(chunks[index]).value_or(0);
  std::size_t dim = permutation.dim;
  std::int64_t begin = made.box.offsets[dim], end = begin + made.box.sizes[dim];
  std::int64_t row = begin;
  while (row < end) {
    // Longest run of rows that are adjacent on disk.
    std::int64_t stop = std::min(end, (row / permutation.block + 1) * permutation.block);
    std::int64_t from = row_destination(permutation.to_disk, permutation.block, row, stop);
    while (stop < end) {
      std::int64_t next = std::min(end, stop + permutation.block);
      if (row_destination(permutation.to_disk, permutation.block, row, next) != from) break;
      stop = next;
    }
    Box wanted = made.box;
    wanted.offsets[dim] = from;
    wanted.sizes[dim] = stop - row;
    Extents at(made.box.sizes.size(), 0);
    at[dim] = row - begin;
    add_pieces(saved, chunks, wanted, at, made);
    row = stop;
  }
  bool is_one_item = made.pieces.size() == 1 && same(made.pieces[0].source.sizes, made.box.sizes) &&
                     made.pieces[0].source == whole(checkpoint.sizes(made.pieces[0].chunk));
  if (is_one_item) {
    made.item = made.pieces[0].chunk;
    made.pieces.clear();
  }
  return made;
}

}  // namespace

Result<PlannedTensor> lower_blocks_permuted(const Checkpoint& checkpoint,
                                            const BlocksPermuted& given) {
  SHW_TRY(Permutation permutation, check_permutation(checkpoint, given));
  PlannedTensor planned;
  planned.tensor = given.tensor;
  planned.shape = copy_of(checkpoint.shape(given.tensor));
  auto chunks = checkpoint.chunks(given.tensor);
  std::vector<Box> saved;
  for (ChunkId chunk : chunks) {
    saved.push_back(box_of(checkpoint, chunk));
    if (!is_inside(saved.back().offsets, saved.back().sizes, planned.shape))
      return cannot_lower(checkpoint, given.tensor, "a chunk is outside the saved shape");
  }
  if (relabel_all(checkpoint, given, permutation, planned)) return planned;
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    if (is_empty(saved[i])) continue;
    planned.chunks.push_back(put_together(checkpoint, permutation, saved, chunks, i));
  }
  return planned;
}

}  // namespace shw
