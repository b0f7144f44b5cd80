#include "core/formats/rank_chunks.h"

#include <optional>

#include "core/formats/common/record_reader.h"
#include "core/tensor/strided_copy.h"

namespace shw {

StorageId RankChunks::storage_of(const RankPiece& piece) {
  const std::pair key(static_cast<std::uint32_t>(piece.file), piece.tensor.payload_offset);
  auto known = storages_.find(key);
  if (known != storages_.end()) return known->second;
  const ItemPlace place{piece.file, static_cast<std::int64_t>(piece.tensor.payload_offset),
                        static_cast<std::int64_t>(piece.tensor.payload_length)};
  const Codec* codec = piece.tensor.big_endian ? &kZipRecordBigCodec : piece.codec;
  return storages_.emplace(key, builder_.add_storage(place, codec)).first->second;
}

Status RankChunks::add(const RankPiece& piece, const std::vector<Box>& boxes) {
  const TorchFileTensor& tensor = piece.tensor;
  std::optional<std::size_t> axis;
  Extents total = boxes.empty() ? tensor.sizes : boxes.front().sizes;
  for (std::size_t b = 1; b < boxes.size(); ++b) {
    for (std::size_t i = 0; i < total.size(); ++i) {
      if (boxes[b].offsets[i] != boxes[0].offsets[i]) axis = i;
    }
    if (axis) total[*axis] += boxes[b].sizes[*axis];
  }
  const bool is_empty = boxes.empty() && volume(tensor.sizes) == 0;
  if (is_empty || (boxes.size() == 1 && volume(total) == 0 && volume(tensor.sizes) == 0)) return {};
  if (total != tensor.sizes || boxes.empty())
    return fail(ErrorKind::kUnsupported,
                "has a number of elements that does not match its placements");
  std::int64_t done = 0;
  for (const Box& box : boxes) {
    const std::int64_t element = tensor.storage_offset + (axis ? done * tensor.strides[*axis] : 0);
    if (axis) done += box.sizes[*axis];
    add_box(piece, box, element, boxes.size() == 1);
  }
  return {};
}

void RankChunks::add_box(const RankPiece& piece, const Box& box, std::int64_t element,
                         bool is_alone) {
  const TorchFileTensor& tensor = piece.tensor;
  auto known = seen_.find({box.offsets, box.sizes});
  if (known != seen_.end()) {
    // A replica is a whole storage, row-major.
    const bool is_whole =
        is_alone && element == 0 && is_row_major(tensor.sizes, tensor.strides) &&
        tensor.payload_length ==
            static_cast<std::uint64_t>(volume(box.sizes).value_or(0)) * size_of(tensor.dtype);
    if (is_whole) builder_.add_replica({known->second, storage_of(piece), piece.rank});
    return;
  }
  const ChunkId chunk = builder_.add_chunk(box.offsets, box.sizes, {});
  const bool is_dense = is_row_major(box.sizes, tensor.strides);
  builder_.set_view(chunk, storage_of(piece), element,
                    is_dense ? ExtentsView{} : ExtentsView(tensor.strides));
  builder_.set_writer(chunk, piece.rank);
  seen_.emplace(std::pair(box.offsets, box.sizes), chunk);
}

}  // namespace shw
