#include "core/formats/block_reader.h"

#include <algorithm>

#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// True if the box is contiguous in the storage.
bool lies_in_one_run(const Box& box, const ChunkStorage& storage, std::size_t element) {
  auto next = static_cast<std::int64_t>(element);
  for (std::size_t d = box.sizes.size(); d-- > 0;) {
    if (box.sizes[d] == 1) continue;
    if (storage.strides[d] != next) return false;
    next *= box.sizes[d];
  }
  return true;
}

std::int64_t begin_of(const Box& box, const ChunkStorage& storage) {
  std::int64_t begin = storage.first;
  for (std::size_t d = 0; d < box.offsets.size(); ++d) begin += box.offsets[d] * storage.strides[d];
  return begin;
}

}  // namespace

Status BlockReader::hold(ChunkId chunk, const Box& box, const ChunkStorage& storage,
                         std::size_t element) {
  holds_ = true;
  const Checkpoint& checkpoint = boxes_.checkpoint();
  if (storage.is_stored || !decoded_.has_room_for(checkpoint, chunk, storage.length)) {
    SHW_TRY(held_, boxes_.read(chunk, box));
    return {};
  }
  // Releases the previous item first, because no thread may wait while holding one.
  SHW_TRY(auto decoded, decoded_.read(checkpoint, chunk, storage.length));
  if (decoded->size() != storage.length)
    return fail(ErrorKind::kDamaged, "decodes to another number of bytes than its header says");
  held_.resize(static_cast<std::size_t>(volume(box.sizes).value_or(0)) * element);
  each_canonical_pair(
      pair_of(box.sizes, storage.strides, begin_of(box, storage), byte_strides(box.sizes, element),
              0),
      [&](const LayoutPair& part) { copy_elements(decoded->data(), held_.data(), part, element); });
  return {};
}

Result<bool> BlockReader::is_stored(ChunkId chunk) {
  SHW_TRY(ChunkStorage storage, boxes_.storage(chunk));
  return storage.is_stored;
}

Status BlockReader::begin(ChunkId chunk, const Box& box) {
  const Checkpoint& checkpoint = boxes_.checkpoint();
  const std::size_t element = size_of(checkpoint.dtype(checkpoint.tensor_of(chunk)));
  extents_.clear();
  SHW_TRY(ChunkStorage storage, boxes_.storage(chunk));
  if (!storage.is_stored || !lies_in_one_run(box, storage, element))
    return hold(chunk, box, storage, element);
  holds_ = false;
  SHW_TRY(source_, boxes_.stored(storage));
  // open_item() has checked the view against the payload.
  first_ = static_cast<std::uint64_t>(begin_of(box, storage));
  auto length = static_cast<std::uint64_t>(volume(box.sizes).value_or(0)) * element;
  extents_ = source_->extents(first_, length);
  std::erase_if(extents_, [](const Extent& extent) { return !extent.hole; });
  return {};
}

bool BlockReader::is_hole(std::uint64_t at, std::uint64_t length) const {
  const std::uint64_t begin = first_ + at, end = begin + length;
  return std::any_of(extents_.begin(), extents_.end(), [&](const Extent& hole) {
    return hole.offset <= begin && end - hole.offset <= hole.length;
  });
}

Result<BytesView> BlockReader::read(std::uint64_t at, std::uint64_t length, Bytes& buffer) {
  if (holds_)
    return BytesView(held_).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(length));
  buffer.resize(static_cast<std::size_t>(length));
  SHW_CHECK(source_->read(first_ + at, buffer));
  return BytesView(buffer);
}

}  // namespace shw
