#include "core/repair/proof/compare_target.h"

#include <algorithm>
#include <compare>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

#include "core/formats/carried_values.h"
#include "core/formats/complete.h"
#include "core/formats/items/item_hash.h"
#include "core/formats/items/items.h"
#include "core/repair/lower/lower.h"
#include "core/tiles/blocks.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

// True if two entries have the same value: by their items if both have one, otherwise decoded.
Result<bool> have_equal_value(const Checkpoint& before, std::size_t object, CarriedValues& values,
                              const Checkpoint& after, std::size_t now, CarriedValues& values_now) {
  const auto &item = before.objects()[object].item, &item_now = after.objects()[now].item;
  if (item && item_now) {
    SHW_TRY(std::string wanted, hash_item(before, *item, nullptr));
    SHW_TRY(std::string written, hash_item(after, *item_now, nullptr));
    if (wanted == written) return true;
  }
  SHW_TRY(CarriedValue wanted, values.of(object));
  SHW_TRY(CarriedValue written, values_now.of(now));
  return is_same_value(before, wanted, after, written, nullptr);
}

// True for a None in a list. torch saves nothing for an empty dict in a list, and puts None there
// when it builds the list again.
bool is_none_in_list(const Checkpoint& result, std::size_t object) {
  const auto& inlined = result.objects()[object].inlined;
  const auto path = result.object_path(object);
  return inlined && inlined->opcodes == "N" && !path.empty() &&
         std::holds_alternative<std::int64_t>(path.back());
}

struct BoxView {
  ExtentsView offsets, sizes;
};
bool is_same_box(const BoxView& a, const BoxView& b) {
  return same(a.offsets, b.offsets) && same(a.sizes, b.sizes);
}
std::strong_ordering order_of(ExtentsView a, ExtentsView b) {
  return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
}
std::vector<std::uint32_t> in_order(const std::vector<BoxView>& boxes) {
  std::vector<std::uint32_t> order(boxes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    auto offsets = order_of(boxes[a].offsets, boxes[b].offsets);
    const auto by_box = offsets != 0 ? offsets : order_of(boxes[a].sizes, boxes[b].sizes);
    return by_box != 0 ? by_box < 0 : a < b;
  });
  return order;
}

bool is_turned(const Part& part) {
  std::int64_t last = -1;
  for (const std::int64_t dim : part.order) {
    if (dim < 0) continue;
    if (dim < last) return true;
    last = dim;
  }
  return false;
}

// Splits a part into blocks of bounded size.
Blocks compared_blocks(const TargetTensor& tensor, const Part& part) {
  const std::int64_t bytes = is_turned(part) ? kTurnedBytes : kComparedBytes;
  const std::int64_t most = bytes / static_cast<std::int64_t>(size_of(tensor.dtype));
  return {part.box.sizes, block_sizes(part.box.sizes, most, {})};
}
// The current block in coordinates of the tensor.
Box block_in(const Part& part, const Blocks& blocks) {
  Box box = blocks.block;
  for (std::size_t d = 0; d < box.offsets.size(); ++d) box.offsets[d] += part.box.offsets[d];
  return box;
}

// Boxes that contain more than padding, sorted.
std::vector<Box> saved_boxes(const TargetTensor& tensor, std::vector<Box> boxes) {
  std::erase_if(boxes, [&](const Box& box) {
    return std::none_of(tensor.parts.begin(), tensor.parts.end(), [&](const Part& part) {
      return !part.is_padding() && intersect(part.box, box).has_value();
    });
  });
  std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) {
    return std::tie(a.offsets, a.sizes) < std::tie(b.offsets, b.sizes);
  });
  return boxes;
}

// True if only the boxes of padding differ: they depend on the number of padding steps, and older
// versions did not merge those.
bool differs_in_padding_alone(const WrittenTensor& written, const Checkpoint& result) {
  const TargetTensor& tensor = written.tensor;
  if (std::none_of(tensor.parts.begin(), tensor.parts.end(), std::mem_fn(&Part::is_padding)))
    return false;
  if (result.dtype(written.at) != tensor.dtype || !same(result.shape(written.at), tensor.shape))
    return false;
  std::vector<Box> there = chunk_boxes(result, written.at), wanted;
  for (const TargetChunk& tile : tensor.tiles) wanted.push_back(tile.box);
  return tiles_exactly(there, tensor.shape) &&
         saved_boxes(tensor, std::move(there)) == saved_boxes(tensor, std::move(wanted));
}

// Marks of elements for PartReader::read(); empty if nothing is cast.
class OutOfRange {
 public:
  OutOfRange(const Part& part, const Box& box)
      : marks_(part.casts.empty() ? 0 : static_cast<std::size_t>(volume(box.sizes).value_or(0))) {}
  std::uint8_t* bytes() { return marks_.empty() ? nullptr : marks_.data(); }
  std::int64_t count() const {
    return std::accumulate(marks_.begin(), marks_.end(), std::int64_t{0});
  }

 private:
  std::vector<std::uint8_t> marks_;
};

}  // namespace

tl::unexpected<Error> differs_from_target(std::string_view fqn, const std::string& what) {
  return fail(ErrorKind::kIo, "the written result differs from the plan: " + what,
              Place{.file = {}, .tensor = std::string(fqn)});
}

Result<WrittenTensor> written_tensor(const TargetState& all, const TargetEntry& entry,
                                     const ResultFormat& form, const Checkpoint& result) {
  SHW_TRY(TargetTensor tensor, target_for(all, entry, form));
  auto at = result.find(entry.fqn);
  if (!at) return differs_from_target(entry.fqn, "it is missing");
  return WrittenTensor{std::move(tensor), *at};
}

Result<std::vector<std::uint32_t>> match_tiles(const WrittenTensor& written,
                                               const Checkpoint& result, std::string_view fqn) {
  if (result.dtype(written.at) != written.tensor.dtype)
    return differs_from_target(fqn, "its dtype");
  if (!same(result.shape(written.at), written.tensor.shape))
    return differs_from_target(fqn, "its shape");
  std::vector<BoxView> there, wanted;
  for (ChunkId chunk : result.chunks(written.at))
    there.push_back({result.offsets(chunk), result.sizes(chunk)});
  for (const TargetChunk& tile : written.tensor.tiles)
    wanted.push_back({tile.box.offsets, tile.box.sizes});
  if (there.size() != wanted.size()) return differs_from_target(fqn, "its chunks");
  std::vector<std::uint32_t> tile_of(there.size());
  std::iota(tile_of.begin(), tile_of.end(), 0u);
  // The tiles nearly always come back in the order in which they were written.
  if (std::equal(there.begin(), there.end(), wanted.begin(), is_same_box)) return tile_of;
  const std::vector<std::uint32_t> left = in_order(there), right = in_order(wanted);
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!is_same_box(there[left[i]], wanted[right[i]]))
      return differs_from_target(fqn, "its chunks");
    tile_of[left[i]] = right[i];
  }
  return tile_of;
}

Status compare_tiles(const WrittenTensor& written, const Checkpoint& result, std::string_view fqn) {
  auto matched = match_tiles(written, result, fqn);
  if (matched || differs_in_padding_alone(written, result)) return {};
  return tl::unexpected<Error>(std::move(matched).error());
}

Result<std::optional<Error>> differing_target_entry(const TargetState& all,
                                                    const Checkpoint& result) {
  auto differs = [](std::string_view fqn, const std::string& what) {
    return std::optional<Error>(differs_from_target(fqn, what).value());
  };
  CarriedValues values(all.source()), values_now(result);
  std::map<std::string_view, std::size_t> there;
  auto rows = result.objects();
  for (std::size_t i = 0; i < rows.size(); ++i) there[rows[i].fqn] = i;
  for (const TargetNonTensorEntry& object : all.objects) {
    auto found = there.find(object.fqn);
    if (found == there.end()) return differs(object.fqn, "it is missing");
    if (object.created != nullptr) {
      SHW_TRY(const CarriedValue written, values_now.of(found->second));
      if (written.opcodes != *object.created) return differs(object.fqn, "its value differs");
      continue;
    }
    SHW_TRY(bool same, have_equal_value(all.source(), object.object, values, result, found->second,
                                        values_now));
    if (!same) return differs(object.fqn, "its value differs");
  }
  for (const TargetNonTensorEntry& object : all.objects) there.erase(object.fqn);
  std::erase_if(there, [&](const auto& entry) { return is_none_in_list(result, entry.second); });
  const Format& format = result.format();
  const Format& before = all.source().format();
  if (&before != &format)
    std::erase_if(there,
                  [&](const auto& entry) { return may_be_added_by_writer(format, entry.first); });
  if (there.empty()) return std::optional<Error>();
  return differs("", "the number of entries that are not tensors differs");
}

Result<std::int64_t> lost_out_of_range(const PartIndex& index, const Box& box, PartReader& wanted,
                                       Progress* progress) {
  std::int64_t count = 0;
  Bytes bytes;
  for (const Box& lost : index.tensor().loss.boxes) {
    const auto both = intersect(lost, box);
    if (!both || is_empty(*both)) continue;
    for (const Part& part : index.parts_of_tile(*both)) {
      Blocks blocks = compared_blocks(index.tensor(), part);
      while (blocks.next()) {
        if (is_cancelled(progress)) return cancelled_error();
        const Box block = block_in(part, blocks);
        OutOfRange marks(part, block);
        SHW_CHECK(wanted.read(part, block, bytes, marks.bytes()));
        count += marks.count();
      }
    }
  }
  return count;
}

Status compare_elements(const PartIndex& index, ChunkId chunk, PartReader& wanted,
                        ItemCursor& written, Progress* progress, ComparedTile& found) {
  const TargetTensor& tensor = index.tensor();
  Box tile = box_of(written.checkpoint(), chunk);
  std::int64_t compared = 0;
  Bytes expected, there;
  for (const Part& part : index.parts_of_tile(tile)) {
    Blocks blocks = compared_blocks(tensor, part);
    while (blocks.next()) {
      if (is_cancelled(progress)) return cancelled_error();
      const Box box = block_in(part, blocks);
      Box local = box;
      for (std::size_t d = 0; d < box.offsets.size(); ++d) local.offsets[d] -= tile.offsets[d];
      const std::int64_t elements = volume(box.sizes).value_or(0);
      if (wanted.is_hole(part, box) && written.is_hole(chunk, local)) {
        compared += elements;
        if (progress != nullptr)
          progress->add(static_cast<std::uint64_t>(elements) * size_of(tensor.dtype));
        continue;
      }
      OutOfRange marks(part, box);
      SHW_CHECK(wanted.read(part, box, expected, marks.bytes()));
      SHW_CHECK(written.read(chunk, local, there));
      if (!same_bytes(expected, there)) {
        bool as_long = expected.size() == there.size();
        if (as_long) found.mismatch = first_mismatch(tensor.dtype, box, there, expected);
        return differs_from_target(tensor.fqn, "elements of " + to_text(box) + " differ");
      }
      compared += elements;
      found.out_of_range += marks.count();
      if (progress != nullptr) progress->add(there.size());
    }
  }
  if (compared != volume(tile.sizes))
    return differs_from_target(
        tensor.fqn, "elements of its chunk at " + to_text(tile.offsets) + " have no source");
  if (found.out_of_range == 0) return {};
  SHW_TRY(const std::int64_t lost, lost_out_of_range(index, tile, wanted, progress));
  found.out_of_range -= lost;
  return {};
}

}  // namespace shw
