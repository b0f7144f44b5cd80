// Removes stream transforms around an item's bytes.
#include "core/formats/common/item_reader.h"
#include "core/formats/zip/zstd_stream.h"

namespace shw {
namespace {

// Bytes kept for the header of a compressed item: local headers, data.pkl and directory.
constexpr std::uint64_t kCachedEndBytes = 64 << 10;

}  // namespace

Result<ItemRange> undo_transforms(ItemRange range, std::span<const std::string> transforms,
                                  std::uint64_t limit, ItemPart part, Progress* progress) {
  SHW_CHECK(check_transforms(transforms, range.source->name()));
  const Decompression how = range.decompression != nullptr ? *range.decompression : Decompression{};
  for (std::size_t i = 0; i < transforms.size(); ++i) {
    std::shared_ptr<const ByteSource> inner;
    const bool is_last = i + 1 == transforms.size();
    if (how.into != nullptr && is_last) {
      SHW_TRY(std::uint64_t size, decompress_zstd_to_file(range.source, range.offset, range.length,
                                                          limit, *how.into, how.progress));
      inner = window(how.into, 0, size);
    } else if (part != ItemPart::kPayload && is_last) {
      const MiddleAccess between =
          part == ItemPart::kStreamedPayload ? MiddleAccess::kStreamed : MiddleAccess::kNothing;
      SHW_TRY(inner, read_zstd_ends(range.source, range.offset, range.length, limit,
                                    kCachedEndBytes, between, progress, how.progress));
    } else {
      SHW_TRY(Bytes bytes, read_zstd(*range.source, range.offset, range.length, limit, progress));
      inner = memory_source(range.source->name(), std::move(bytes));
    }
    range = {inner, 0, inner->size(), range.decompression};
  }
  return range;
}

}  // namespace shw
