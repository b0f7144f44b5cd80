#include "core/formats/common/chunk_header.h"

#include "core/base/checked.h"
#include "core/tensor/strided_copy.h"

namespace shw {

Extents chunk_strides(const Checkpoint& checkpoint, ChunkId chunk) {
  const auto view = checkpoint.view(chunk);
  return view && !view->strides.empty() ? copy_of(view->strides)
                                        : row_major_strides(checkpoint.sizes(chunk));
}

ItemHeader chunk_header(const Checkpoint& checkpoint, ChunkId chunk, const ItemRange& range) {
  ItemHeader header;
  header.dtype = checkpoint.dtype(checkpoint.tensor_of(chunk));
  header.sizes = copy_of(checkpoint.sizes(chunk));
  header.strides = chunk_strides(checkpoint, chunk);
  header.payload_offset = range.offset;
  return header;
}

Result<ItemHeader> whole_chunk_header(const Checkpoint& checkpoint, ChunkId chunk,
                                      const ItemRange& range) {
  ItemHeader header = chunk_header(checkpoint, chunk, range);
  const auto needed = storage_needed(header.sizes, header.strides, 0);
  const auto bytes = needed ? checked_mul(static_cast<std::uint64_t>(*needed),
                                          std::uint64_t{size_of(header.dtype)})
                            : std::nullopt;
  if (!bytes)
    return fail(ErrorKind::kDamaged, "has impossible sizes or strides",
                {range.source->name(), range.offset});
  header.payload_length = *bytes;
  return header;
}

}  // namespace shw
