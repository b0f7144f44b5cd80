#include "core/formats/element_pass.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/formats/box_reader.h"
#include "core/formats/item_access.h"
#include "core/formats/items.h"

namespace shw {
namespace {

// Bytes per read of a view with gaps.
constexpr std::int64_t kSlab = 8 << 20;

// True if the elements form one byte run without gaps: row-major in some order of dims.
bool lies_in_one_run(const ItemHeader& header) {
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

Status pass_run(const OpenItem& item, ElementRange range, const ExtentVisitor& parts,
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

Status pass_slabs(const Checkpoint& checkpoint, ChunkId chunk, const ItemHeader& header,
                  const ExtentVisitor& parts, Progress* progress) {
  const std::vector<Box> slabs =
      row_slabs(header.sizes, kSlab / static_cast<std::int64_t>(size_of(header.dtype)));
  BoxReader reader(checkpoint, /*decoded_bytes=*/0);
  Bytes bytes;
  for (const Box& slab : slabs) {
    if (is_cancelled(progress)) return cancelled_error();
    SHW_CHECK(reader.read(chunk, slab, bytes));
    if (progress != nullptr) progress->add(bytes.size());
    SHW_CHECK(parts.bytes(bytes));
  }
  return {};
}

}  // namespace

ElementPasses::ElementPasses(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint), files_(std::make_unique<ItemFiles>(checkpoint)) {}
ElementPasses::~ElementPasses() = default;

Result<std::int64_t> ElementPasses::pass(ChunkId chunk, ElementRange range,
                                         const ExtentVisitor& parts, Progress* progress,
                                         const ConstantRunSink& alike) {
  const Checkpoint& checkpoint = checkpoint_;
  // Skips compressed items, because reading the header alone means decompressing the item.
  if (range.first != 0 && !checkpoint.transforms(chunk).empty()) return 0;
  if (auto place = checkpoint.item(chunk)) files_->read_around(*place);
  SHW_TRY(OpenItem item, open_item(*files_, checkpoint, chunk, ItemPart::kPassing));
  const ItemHeader& header = item.header;
  auto count = volume(header.sizes);
  const bool as_recorded = header.dtype == checkpoint.dtype(checkpoint.tensor_of(chunk)) &&
                           same(header.sizes, checkpoint.sizes(chunk)) &&
                           size_of(header.dtype) != 0 && count && range.last <= *count;
  if (!as_recorded) return tl::unexpected<Error>(not_as_recorded(checkpoint, chunk, header));
  if (*count == 0) return 0;
  const bool in_one_run = lies_in_one_run(header);
  if (in_one_run && !header.compressed) {
    SHW_CHECK(pass_run(item, range, parts, progress));
    return range.last - range.first;
  }
  if (range.first != 0) return 0;
  if (alike != nullptr && !item.alike.empty() && !has_flags(header)) {
    if (progress != nullptr) progress->add(header.payload_length);
    SHW_CHECK(alike(item.alike, static_cast<std::uint64_t>(*count)));
    return *count;
  }
  SHW_CHECK(check_repeats(item));
  SHW_CHECK(in_one_run ? pass_run(item, {0, *count}, parts, progress)
                       : pass_slabs(checkpoint, chunk, header, parts, progress));
  return *count;
}

ConstantRunSink counting_alike(StatisticsSums& sums) {
  if (size_of(sums.dtype) > sizeof(std::uint64_t)) return nullptr;
  return [&sums](BytesView element, std::uint64_t count) -> Status {
    std::uint64_t bits = 0;
    std::memcpy(&bits, element.data(), std::min(element.size(), sizeof bits));
    add_elements(sums, bits, count);
    return {};
  };
}

Result<std::int64_t> pass_elements(const Checkpoint& checkpoint, ChunkId chunk, ElementRange range,
                                   const ExtentVisitor& parts, Progress* progress) {
  return ElementPasses(checkpoint).pass(chunk, range, parts, progress);
}

}  // namespace shw
