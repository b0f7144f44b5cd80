// Passes over the bytes of items: CRCs, which torch itself never looks at, and fingerprints of
// files' ranges.
#include <algorithm>
#include <array>

#include "core/base/hash.h"
#include "core/base/little_endian.h"
#include "core/formats/common/magic.h"
#include "core/formats/hash_ranges.h"
#include "core/formats/item_access.h"
#include "core/formats/items.h"

namespace shw {
namespace {

constexpr std::uint64_t kRead = 1 << 20;
constexpr std::uint64_t kMaxObject = std::uint64_t{4} << 30;
constexpr std::uint64_t kMaxItem = std::uint64_t{64} << 30;

// Nothing was looked at where the codec has no checksums.
Result<DataCheck> check_with(const Codec* codec, const ItemRange& range,
                             std::span<const std::string> transforms, std::uint64_t limit,
                             Progress* progress) {
  const ItemReader* reader = codec == nullptr ? nullptr : codec->reader;
  if (reader == nullptr || reader->check == nullptr) return DataCheck{};
  return reader->check(range, transforms, limit, progress);
}

}  // namespace

Result<DataCheck> check_item_data(const Checkpoint& checkpoint, ChunkId chunk, Progress* progress) {
  std::string_view tensor = checkpoint.fqn(checkpoint.tensor_of(chunk));
  auto check = [&]() -> Result<DataCheck> {
    auto place = checkpoint.item(chunk);
    if (!place) return fail(ErrorKind::kDamaged, "no storage record says where its bytes are");
    ItemFiles files(checkpoint);
    SHW_TRY(ItemRange range, find_item(files, *place));
    return check_with(&checkpoint.codec(chunk), range, checkpoint.transforms(chunk), kMaxItem,
                      progress);
  }();
  if (check) return check;
  return tl::unexpected<Error>(naming(std::move(check).error(), tensor));
}

Result<DataCheck> check_object_data(const Checkpoint& checkpoint, std::size_t object,
                                    Progress* progress) {
  const ObjectRow& row = checkpoint.objects()[object];
  auto check = [&]() -> Result<DataCheck> {
    if (!row.item) return fail(ErrorKind::kDamaged, "no storage record says where its bytes are");
    ItemFiles files(checkpoint);
    SHW_TRY(ItemRange range, find_item(files, *row.item));
    // Transforms are recorded for chunks only; a compressed object shows by its first bytes.
    std::array<std::byte, 4> magic{};
    if (range.length >= magic.size()) SHW_CHECK(range.source->read(range.offset, magic));
    std::vector<std::string> transforms;
    if (load_little<std::uint32_t>(magic) == kZstdMagic) transforms.emplace_back("stream.zstd/1");
    return check_with(checkpoint.format().codec, range, transforms, kMaxObject, progress);
  }();
  if (check) return check;
  return tl::unexpected<Error>(naming(std::move(check).error(), row.fqn));
}

Result<std::string> hash_ranges(const ByteSource& source, std::span<const ByteRange> ranges,
                                Progress* progress) {
  RunningHash hash;
  std::uint64_t longest = 0;
  for (const ByteRange& range : ranges) longest = std::max(longest, range.length);
  Bytes buffer(std::min(kRead, longest));
  auto add = [&](const Extent& extent) -> Status {
    if (extent.hole) std::fill(buffer.begin(), buffer.end(), std::byte{0});
    for (std::uint64_t done = 0; done < extent.length;) {
      if (is_cancelled(progress)) return cancelled_error();
      auto part = std::span(buffer).first(std::min<std::uint64_t>(kRead, extent.length - done));
      if (!extent.hole) SHW_CHECK(source.read(extent.offset + done, part));
      hash.add(part);
      done += part.size();
      if (progress != nullptr) progress->add(part.size());
    }
    return {};
  };
  for (const ByteRange& range : ranges) {
    for (const Extent& extent : source.extents(range.offset, range.length)) SHW_CHECK(add(extent));
  }
  return hash.text();
}

Result<std::string> hash_item(const Checkpoint& checkpoint, ItemPlace place, Progress* progress) {
  ItemFiles files(checkpoint);
  SHW_TRY(ItemRange range, find_item(files, place));
  ByteRange bytes{range.offset, range.length};
  return hash_ranges(*range.source, std::span(&bytes, 1), progress);
}

}  // namespace shw
