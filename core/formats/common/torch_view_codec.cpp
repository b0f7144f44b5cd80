#include "core/formats/common/torch_view_codec.h"

#include <fmt/core.h>

#include "core/formats/common/chunk_header.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/item_reader.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

Result<OpenItem> open_view(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                           ItemPart part) {
  const Dtype dtype = checkpoint.dtype(checkpoint.tensor_of(chunk));
  SHW_TRY(OpenItem item, kTorchZipCodec.reader->open(checkpoint, chunk, std::move(range), part));
  ItemHeader& header = item.header;
  const auto held = volume(header.sizes);
  const auto view = checkpoint.view(chunk);
  const std::int64_t first = view ? view->offset : 0;
  Extents sizes = copy_of(checkpoint.sizes(chunk));
  Extents strides = chunk_strides(checkpoint, chunk);
  const auto needed = storage_needed(sizes, strides, first);
  if (header.dtype != dtype || !held || !needed || *needed > *held ||
      !is_row_major(header.sizes, header.strides))
    return fail(
        ErrorKind::kDamaged,
        fmt::format("the payload is {} of {}, but should hold {} of {} from element {} on",
                    to_text(header.sizes), name(header.dtype), to_text(sizes), name(dtype), first),
        {item.source->name(), header.payload_offset});
  header.storage_offset += first;
  header.sizes = std::move(sizes);
  header.strides = std::move(strides);
  return item;
}

Result<DataCheck> check_view(const ItemRange& range, std::span<const std::string> transforms,
                             std::uint64_t limit, Progress* progress, PayloadObserver* watch) {
  return kTorchZipCodec.reader->check(range, transforms, limit, progress, watch);
}

Result<std::optional<std::vector<ChecksummedRun>>> view_checksums(const ItemRange& range) {
  return kTorchZipCodec.reader->sums(range);
}

constexpr ItemReader kTorchZipViewReader{open_view, check_view, nullptr, view_checksums};

}  // namespace

constexpr Codec kTorchZipViewCodec{"torch-zip-view", &kTorchZipViewReader};

}  // namespace shw
