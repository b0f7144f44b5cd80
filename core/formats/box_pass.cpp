#include "core/formats/box_pass.h"

#include <algorithm>
#include <numeric>

#include "core/formats/item_access.h"
#include "core/tensor/tile_fingerprint.h"

namespace shw {
namespace {

constexpr std::int64_t kPiece = std::int64_t{4} << 20;  // in bytes

// Dimensions by stride, largest first. Dimensions of size 1 come
// last.
std::vector<std::size_t> widest_first(const ItemHeader& header) {
  std::vector<std::size_t> order(header.sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const bool a_steps = header.sizes[a] > 1, b_steps = header.sizes[b] > 1;
    return a_steps != b_steps ? a_steps : a_steps && header.strides[a] > header.strides[b];
  });
  return order;
}

}  // namespace

Status pass_boxes(BoxReader& reader, ChunkId chunk, const Box& all, const TakeBox& take,
                  const Progress* progress) {
  SHW_TRY(const ItemHeader header, reader.header(chunk));
  if (!is_as_recorded(reader.checkpoint(), chunk, header) || size_of(header.dtype) == 0)
    return tl::unexpected<Error>(not_as_recorded(reader.checkpoint(), chunk, header));
  if (is_empty(all)) return {};
  const std::vector<std::size_t> order = widest_first(header);
  Extents sizes(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) sizes[i] = all.sizes[order[i]];
  Box box = all;
  Bytes bytes;
  for (const Box& slab :
       row_slabs(sizes, kPiece / static_cast<std::int64_t>(size_of(header.dtype)))) {
    if (is_cancelled(progress)) return cancelled_error();
    for (std::size_t i = 0; i < order.size(); ++i) {
      box.offsets[order[i]] = all.offsets[order[i]] + slab.offsets[i];
      box.sizes[order[i]] = slab.sizes[i];
    }
    SHW_CHECK(reader.read(chunk, box, bytes));
    SHW_CHECK(take(box, bytes));
  }
  return {};
}

Result<Fingerprint> fingerprint_in_pieces(const Checkpoint& checkpoint, ChunkId chunk,
                                          const Progress* progress) {
  const TensorId tensor = checkpoint.tensor_of(chunk);
  const ExtentsView tile = checkpoint.offsets(chunk);
  const Extents strides = row_major_strides(checkpoint.shape(tensor));
  Fingerprint sum;
  auto take = [&](const Box& box, BytesView elements) -> Status {
    std::int64_t first = 0;
    for (std::size_t d = 0; d < tile.size(); ++d) first += (tile[d] + box.offsets[d]) * strides[d];
    add_box(sum, box.sizes, elements, size_of(checkpoint.dtype(tensor)), strides, first);
    return {};
  };
  BoxReader reader(checkpoint, /*decoded_bytes=*/0);
  SHW_CHECK(pass_boxes(reader, chunk, whole(checkpoint.sizes(chunk)), take, progress));
  return sum;
}

}  // namespace shw
