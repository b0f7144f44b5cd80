#include "core/verbs/read_elements.h"

#include <string>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/formats/items/item_cursor.h"
#include "core/tensor/strided_copy.h"
#include "core/tiles/blocks.h"
#include "core/tiles/exact_tiling.h"

namespace shw::verbs {
namespace {

// Elements per read, so that memory does not grow with the box.
constexpr std::int64_t kMostElements = 16 << 20;
constexpr std::size_t kMostGaps = 16;

bool is_valid(const Box& tile, std::size_t ndim) {
  if (tile.offsets.size() != ndim || tile.sizes.size() != ndim) return false;
  for (std::size_t d = 0; d < ndim; ++d) {
    if (tile.sizes[d] < 0 || !checked_add(tile.offsets[d], tile.sizes[d])) return false;
  }
  return true;
}

}  // namespace

Status read_elements(const Checkpoint& checkpoint, TensorId tensor, const Box& box,
                     std::span<std::byte> out, Progress* progress) {
  const Place place{.file = {}, .tensor = std::string(checkpoint.fqn(tensor))};
  const ExtentsView shape = checkpoint.shape(tensor);
  const std::size_t element = size_of(checkpoint.dtype(tensor));
  if (element == 0)
    return fail(ErrorKind::kUnsupported, "the size of its elements is not known", place);
  bool is_inside = is_valid(box, shape.size());
  for (std::size_t d = 0; is_inside && d < shape.size(); ++d)
    is_inside = box.offsets[d] >= 0 && box.offsets[d] + box.sizes[d] <= shape[d];
  if (!is_inside) return fail(ErrorKind::kUsage, "the box is not inside the tensor", place);
  const auto count = volume(box.sizes);
  if (!count || out.size() % element != 0 ||
      out.size() / element != static_cast<std::uint64_t>(*count))
    return fail(ErrorKind::kUsage, "the memory has another size than the elements of the box",
                place);
  if (*count == 0) return {};
  if (progress != nullptr) progress->begin(Phase::kReadingBytes, out.size(), true);
  const Extents strides = row_major_strides(box.sizes);
  ItemCursor reader(checkpoint);
  Bytes bytes;
  std::vector<Box> read;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    const Box tile{copy_of(checkpoint.offsets(chunk)), copy_of(checkpoint.sizes(chunk))};
    if (!is_valid(tile, shape.size())) continue;
    const auto common = intersect(tile, box);
    if (!common || is_empty(*common)) continue;
    Blocks blocks{common->sizes, block_sizes(common->sizes, kMostElements, {})};
    while (blocks.next()) {
      if (is_cancelled(progress)) return cancelled_error();
      Box inside = blocks.block;
      std::int64_t at = 0;
      for (std::size_t d = 0; d < inside.offsets.size(); ++d) {
        const std::int64_t in_tensor = common->offsets[d] + inside.offsets[d];
        at += (in_tensor - box.offsets[d]) * strides[d];
        inside.offsets[d] = in_tensor - tile.offsets[d];
      }
      SHW_CHECK(reader.read(chunk, inside, bytes));
      copy_strided({bytes, row_major_strides(inside.sizes), 0}, {out, strides, at}, inside.sizes,
                   element);
      if (progress != nullptr) progress->add(bytes.size());
    }
    read.push_back(*common);
    for (std::size_t d = 0; d < box.offsets.size(); ++d) read.back().offsets[d] -= box.offsets[d];
  }
  const auto gaps = complement(read, box.sizes, kMostGaps);
  if (gaps && gaps->empty()) return {};
  const auto missing = gaps ? total_volume(*gaps) : std::nullopt;
  return fail(ErrorKind::kDamaged,
              (missing ? plural(static_cast<std::uint64_t>(*missing), "element") : "elements") +
                  " of it are in no chunk",
              place);
}

}  // namespace shw::verbs
