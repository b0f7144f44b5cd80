#include "core/facts/values/tensor_pieces.h"

#include <cstring>

#include "core/formats/items/element_pass.h"
#include "core/tensor/cast.h"
#include "core/tiles/coverage.h"

namespace shw {
namespace {

// Reads the tiles of one tensor in rotation.
class TileReader {
 public:
  TileReader(const Checkpoint& checkpoint, TensorId tensor, Dtype dtype, Progress* progress)
      : checkpoint_(checkpoint),
        tensor_(tensor),
        dtype_(dtype),
        progress_(progress),
        reader_(checkpoint, /*decoded_bytes=*/0) {}

  bool read(const Box& box, Bytes& to) {
    if (checkpoint_.dtype(tensor_) == dtype_) {
      for (ChunkId chunk : checkpoint_.chunks(tensor_)) {
        const Box tile = box_of(checkpoint_, chunk);
        if (intersect(tile, box) == box) return read_box_in_one_chunk(chunk, tile, box, to);
      }
    }
    const std::size_t width = size_of(dtype_);
    to.resize(static_cast<std::size_t>(volume(box.sizes).value_or(0)) * width);
    const Extents strides = row_major_strides(box.sizes);
    return pass(box, [&](const Box& piece, BytesView elements) {
      Box inside = piece;
      for (std::size_t d = 0; d < inside.offsets.size(); ++d) inside.offsets[d] -= box.offsets[d];
      each_row(
          inside, elements, width, strides, [&](const Extents&, std::int64_t at, BytesView row) {
            std::memcpy(to.data() + static_cast<std::size_t>(at) * width, row.data(), row.size());
          });
    });
  }

  bool pass(const Box& wanted, const PieceSink& take) {
    for (ChunkId chunk : checkpoint_.chunks(tensor_)) {
      const Box tile = box_of(checkpoint_, chunk);
      auto shared = intersect(tile, wanted);
      if (!shared || is_empty(*shared)) continue;
      for (std::size_t d = 0; d < tile.offsets.size(); ++d) shared->offsets[d] -= tile.offsets[d];
      auto give = [&](const Box& box, BytesView elements) {
        return this->deliver_box_of_tile(tile, box, elements, take);
      };
      if (!stream_boxes(reader_, chunk, *shared, give, progress_)) return false;
    }
    return true;
  }

 private:
  // The box lies in one chunk: its elements are not copied twice.
  bool read_box_in_one_chunk(ChunkId chunk, const Box& tile, Box box, Bytes& to) {
    for (std::size_t d = 0; d < box.offsets.size(); ++d) box.offsets[d] -= tile.offsets[d];
    if (is_cancelled(progress_) || !reader_.storage(chunk) || !reader_.read(chunk, box, to))
      return false;
    if (progress_ != nullptr) progress_->add(to.size());
    return true;
  }

  Status deliver_box_of_tile(const Box& tile, Box box, BytesView elements,
                             const PieceSink& take) const {
    for (std::size_t d = 0; d < tile.offsets.size(); ++d) box.offsets[d] += tile.offsets[d];
    if (progress_ != nullptr) progress_->add(elements.size());
    const Dtype own = checkpoint_.dtype(tensor_);
    if (own == dtype_) {
      take(box, elements);
      return {};
    }
    SHW_TRY(Bytes cast, cast_elements(own, elements, dtype_));
    take(box, cast);
    return {};
  }

  const Checkpoint& checkpoint_;
  const TensorId tensor_;
  const Dtype dtype_;
  Progress* const progress_;
  ItemCursor reader_;
};

}  // namespace

std::optional<PiecedTensor> pieces_of(const Checkpoint& checkpoint, TensorId tensor, Dtype dtype,
                                      Progress* progress) {
  if (dtype == Dtype::kUnknown) dtype = checkpoint.dtype(tensor);
  if (checkpoint.directory() == nullptr || size_of(checkpoint.dtype(tensor)) == 0 ||
      size_of(dtype) == 0 || compute_tiling(checkpoint, tensor).tiling != Tiling::kExact)
    return std::nullopt;
  auto tiles = std::make_shared<TileReader>(checkpoint, tensor, dtype, progress);
  return PiecedTensor{
      dtype, copy_of(checkpoint.shape(tensor)),
      [tiles](const Box& box, const PieceSink& take) { return tiles->pass(box, take); },
      [tiles](const Box& box, Bytes& to) { return tiles->read(box, to); }};
}

std::int64_t index_at(ExtentsView offsets, ExtentsView strides) {
  std::int64_t index = 0;
  for (std::size_t d = 0; d < offsets.size(); ++d) index += offsets[d] * strides[d];
  return index;
}

std::optional<Fingerprint> fingerprint_of(const PiecedTensor& tensor) {
  Fingerprint sum;
  const Extents strides = row_major_strides(tensor.shape);
  const bool is_read = tensor.pass(whole(tensor.shape), [&](const Box& box, BytesView elements) {
    add_box(sum, box.sizes, elements, size_of(tensor.dtype), strides,
            index_at(box.offsets, strides));
  });
  return is_read ? std::optional(sum) : std::nullopt;
}

}  // namespace shw
