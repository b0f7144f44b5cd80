#include "core/formats/items/element_pass.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/formats/items/item_access.h"

namespace shw {
namespace {

constexpr std::int64_t kPiece = std::int64_t{4} << 20;  // bytes of a box that is read at once

// True if the elements form one byte run without gaps: row-major in some order of dims.
bool is_one_byte_run(const ItemHeader& header) {
  std::vector<std::size_t> order(header.sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t d) { return header.sizes[d] == 1; });
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return header.strides[a] < header.strides[b]; });
  std::int64_t step = 1;
  for (std::size_t d : order) {
    if (header.strides[d] != step) return false;
    step *= header.sizes[d];
  }
  return true;
}

Status visit_contiguous_run(const OpenItem& item, ElementRange range, const ExtentVisitor& parts,
                            Progress* progress) {
  const ItemHeader& header = item.header;
  // open_item() has checked the view against the payload.
  const std::uint64_t width = size_of(header.dtype);
  auto first = static_cast<std::uint64_t>(header.storage_offset + range.first);
  auto count = static_cast<std::uint64_t>(range.last - range.first);
  SHW_TRY(StorageBytes storage, storage_bytes(item));
  const std::uint64_t begin = storage.offset + first * width;
  if (!has_flags(header))
    return read_through(*storage.source, begin, count * width, parts, progress);
  Bytes turned;
  ExtentVisitor each;  // also receives holes, because negated zeros are not zeros
  each.bytes = [&](BytesView bytes) -> Status {
    turned.assign(bytes.begin(), bytes.end());
    SHW_CHECK(apply_flags(item, turned));
    return parts.bytes(turned);
  };
  return read_through(*storage.source, begin, count * width, each, progress);
}

// Dimensions by stride, largest first. Dimensions of size 1 come
// last.
std::vector<std::size_t> dims_by_stride(const ItemHeader& header) {
  std::vector<std::size_t> order(header.sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const bool a_steps = header.sizes[a] > 1, b_steps = header.sizes[b] > 1;
    return a_steps != b_steps ? a_steps : a_steps && header.strides[a] > header.strides[b];
  });
  return order;
}

// For items that are not one run of bytes.
Status visit_pieces(const Checkpoint& checkpoint, ChunkId chunk, const ExtentVisitor& parts,
                    Progress* progress) {
  ItemCursor items(checkpoint, /*decoded_bytes=*/0);  // releases its decoder after this item
  auto take = [&](const Box&, BytesView elements) -> Status {
    if (progress != nullptr) progress->add(elements.size());
    return parts.bytes(elements);
  };
  return stream_boxes(items, chunk, whole(checkpoint.sizes(chunk)), take, progress);
}

}  // namespace

Status stream_boxes(ItemCursor& items, ChunkId chunk, const Box& all, const BoxSink& take,
                    const Progress* progress) {
  SHW_TRY(const ItemHeader header, items.header(chunk));
  if (!matches_record(items.checkpoint(), chunk, header) || size_of(header.dtype) == 0)
    return tl::unexpected<Error>(recorded_mismatch_error(items.checkpoint(), chunk, header));
  if (is_empty(all)) return {};
  const std::vector<std::size_t> order = dims_by_stride(header);
  Extents sizes(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) sizes[i] = all.sizes[order[i]];
  Box box = all;
  Bytes bytes;
  for (const Box& slab :
       split_into_row_boxes(sizes, kPiece / static_cast<std::int64_t>(size_of(header.dtype)))) {
    if (is_cancelled(progress)) return cancelled_error();
    for (std::size_t i = 0; i < order.size(); ++i) {
      box.offsets[order[i]] = all.offsets[order[i]] + slab.offsets[i];
      box.sizes[order[i]] = slab.sizes[i];
    }
    SHW_CHECK(items.read(chunk, box, bytes));
    SHW_CHECK(take(box, bytes));
  }
  return {};
}

Result<std::int64_t> stream_elements(ItemCursor& items, ChunkId chunk, ElementRange range,
                                     const ExtentVisitor& parts, Progress* progress,
                                     const ConstantRunSink& alike) {
  const Checkpoint& checkpoint = items.checkpoint();
  // Skips compressed items, because reading the header alone means decompressing the item.
  if (range.first != 0 && !checkpoint.transforms(chunk).empty()) return 0;
  if (auto place = checkpoint.item(chunk)) items.files().read_with_following_items(*place);
  SHW_TRY(OpenItem item, open_item(items.files(), checkpoint, chunk, ItemPart::kStreamedPayload));
  const ItemHeader& header = item.header;
  auto count = volume(header.sizes);
  const bool as_recorded = header.dtype == checkpoint.dtype(checkpoint.tensor_of(chunk)) &&
                           same(header.sizes, checkpoint.sizes(chunk)) &&
                           size_of(header.dtype) != 0 && count && range.last <= *count;
  if (!as_recorded)
    return tl::unexpected<Error>(recorded_mismatch_error(checkpoint, chunk, header));
  if (*count == 0) return 0;
  const bool in_one_run = is_one_byte_run(header);
  if (in_one_run && !header.compressed) {
    SHW_CHECK(visit_contiguous_run(item, range, parts, progress));
    return range.last - range.first;
  }
  if (range.first != 0) return 0;
  if (alike != nullptr && !item.alike.empty() && !has_flags(header)) {
    if (progress != nullptr) progress->add(header.payload_length);
    SHW_CHECK(alike(item.alike, static_cast<std::uint64_t>(*count)));
    return *count;
  }
  SHW_CHECK(check_repeats(item));
  SHW_CHECK(in_one_run ? visit_contiguous_run(item, {0, *count}, parts, progress)
                       : visit_pieces(checkpoint, chunk, parts, progress));
  return *count;
}

ConstantRunSink constant_run_counter(StatisticsSums& sums) {
  if (size_of(sums.dtype) > sizeof(std::uint64_t)) return nullptr;
  return [&sums](BytesView element, std::uint64_t count) -> Status {
    std::uint64_t bits = 0;
    std::memcpy(&bits, element.data(), std::min(element.size(), sizeof bits));
    add_elements(sums, bits, count);
    return {};
  };
}

}  // namespace shw
