#include "core/verbs/values/read_elements.h"

#include <string>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/formats/items/item_cursor.h"
#include "core/formats/items/tensor_box.h"
#include "core/tiles/exact_tiling.h"

namespace shw::verbs {
namespace {

constexpr std::size_t kMostGaps = 16;

}  // namespace

Status read_elements(const Checkpoint& checkpoint, TensorId tensor, const Box& box,
                     std::span<std::byte> out, Progress* progress) {
  const Place place{.file = {}, .tensor = std::string(checkpoint.fqn(tensor))};
  const ExtentsView shape = checkpoint.shape(tensor);
  const std::size_t element = size_of(checkpoint.dtype(tensor));
  if (element == 0)
    return fail(ErrorKind::kUnsupported, "its dtype has no known element size", place);
  if (!is_inside(box.offsets, box.sizes, shape))
    return fail(ErrorKind::kUsage, "the box is not inside the tensor", place);
  const auto count = volume(box.sizes);
  if (!count || out.size() % element != 0 ||
      out.size() / element != static_cast<std::uint64_t>(*count))
    return fail(ErrorKind::kUsage, "the buffer size does not match the elements of the box", place);
  if (*count == 0) return {};
  if (progress != nullptr) progress->begin(Phase::kReadingBytes, out.size(), true);
  ItemCursor items(checkpoint);
  SHW_TRY(const std::vector<Box> read, read_tensor_box(items, tensor, box, out, progress));
  const auto gaps = complement(read, box.sizes, kMostGaps);
  if (gaps && gaps->empty()) return {};
  const auto missing = gaps ? total_volume(*gaps) : std::nullopt;
  return fail(ErrorKind::kDamaged,
              (missing ? plural(static_cast<std::uint64_t>(*missing), "element") : "elements") +
                  " of it are in no chunk",
              place);
}

}  // namespace shw::verbs
