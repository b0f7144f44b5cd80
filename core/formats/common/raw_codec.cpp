// Items without header: the checkpoint's metadata describes them.
#include <fmt/core.h>

#include "core/base/checked.h"
#include "core/formats/common/chunk_header.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/item_reader.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// A whole storage must be exactly the chunk; a view must be inside it.
bool fits(const ItemHeader& header, bool is_view, std::uint64_t length) {
  std::uint64_t element = size_of(header.dtype);
  auto needed = storage_needed(header.sizes, header.strides, header.storage_offset);
  auto bytes = needed ? checked_mul(static_cast<std::uint64_t>(*needed), element) : std::nullopt;
  return bytes && (is_view ? *bytes <= length : *bytes == length);
}

Result<OpenItem> open_raw(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range, ItemPart) {
  OpenItem item;
  item.header = chunk_header(checkpoint, chunk, range);
  const auto view = checkpoint.view(chunk);
  if (view) item.header.storage_offset = view->offset;
  if (item.header.dtype == Dtype::kUnknown)
    return fail(ErrorKind::kUnsupported, "its dtype is not supported",
                {range.source->name(), range.offset});
  if (!fits(item.header, view.has_value(), range.length))
    return fail(ErrorKind::kDamaged,
                fmt::format("holds {} bytes, which does not match {} of {}", range.length,
                            to_text(item.header.sizes), name(item.header.dtype)),
                {range.source->name(), range.offset});
  item.header.payload_length = range.length;
  item.source = std::move(range.source);
  return item;
}

constexpr ItemReader kRawReader{open_raw, nullptr};

}  // namespace

constexpr Codec kRawCodec{"raw", &kRawReader, true};

}  // namespace shw
