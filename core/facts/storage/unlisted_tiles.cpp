// A record is accepted as a chunk only if nothing else is possible: its item is readable and has
// the tensor's dtype, no other record claims its bytes, and all of the tensor's records and listed
// chunks cover the tensor exactly once.
#include "core/facts/storage/unlisted_tiles.h"

#include <algorithm>
#include <optional>

#include "core/base/checked.h"
#include "core/facts/storage/orphans.h"
#include "core/formats/items/items.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

// Limit of items read: a tensor of 8,192 ranks has as many.
constexpr std::size_t kMaxRead = 65'536;

using ByTensor = std::map<TensorId, std::vector<std::size_t>>;  // indices in unclaimed_records()

ByTensor unclaimed_records_by_tensor(const Checkpoint& checkpoint) {
  ByTensor found;
  for (std::size_t i = 0; i < checkpoint.unclaimed_records().size(); ++i) {
    const UnclaimedStorageRecord& unclaimed = checkpoint.unclaimed_records()[i];
    auto tensor = unclaimed.offsets ? checkpoint.find(unclaimed.fqn) : std::nullopt;
    if (tensor) found[*tensor].push_back(i);
  }
  return found;
}

// Byte ranges claimed by more than one record, by file.
class MultiplyClaimedRanges {
 public:
  explicit MultiplyClaimedRanges(const CheckInput& input) : input_(input) {
    for (const UnclaimedStorageRecord& unclaimed : input.checkpoint.unclaimed_records()) {
      if (unclaimed.item.file != FileId::kNone) by_file_[unclaimed.item.file];
    }
    auto offer = [&](const std::optional<ItemPlace>& place) {
      auto range = place ? range_of(input.checkpoint, *place) : std::nullopt;
      if (!range) return;
      if (auto found = by_file_.find(place->file); found != by_file_.end())
        found->second.push_back(*range);
    };
    for (const NonTensorEntry& object : input.checkpoint.objects()) offer(object.item);
    for (ChunkId chunk : each_of(input.checkpoint.chunks(), input))
      offer(input.checkpoint.item(chunk));
    for (const UnclaimedStorageRecord& unclaimed : input.checkpoint.unclaimed_records())
      offer(unclaimed.item);
    for (auto& [file, ranges] : by_file_) keep_overlapping_parts(ranges);
  }

  bool is_claimed_twice(const ItemPlace& place) const {
    auto found = by_file_.find(place.file);
    auto range = range_of(input_.checkpoint, place);
    if (found == by_file_.end() || !range) return false;
    auto next =
        std::partition_point(found->second.begin(), found->second.end(),
                             [&](const UnclaimedRange& r) { return r.end <= range->begin; });
    return next != found->second.end() && next->begin < range->end;
  }

 private:
  // Reduces ranges to the parts that two of them share, sorted.
  static void keep_overlapping_parts(std::vector<UnclaimedRange>& ranges) {
    std::sort(ranges.begin(), ranges.end(),
              [](const UnclaimedRange& a, const UnclaimedRange& b) { return a.begin < b.begin; });
    std::vector<UnclaimedRange> shared;
    std::uint64_t reach = 0;
    for (const UnclaimedRange& range : ranges) {
      const std::uint64_t end = std::min(reach, range.end);
      if (range.begin < end) {
        if (!shared.empty() && range.begin <= shared.back().end)
          shared.back().end = std::max(shared.back().end, end);
        else
          shared.push_back({range.begin, end});
      }
      reach = std::max(reach, range.end);
    }
    ranges = std::move(shared);
  }

  const CheckInput& input_;
  std::map<FileId, std::vector<UnclaimedRange>> by_file_;
};

// A chunk whose items have the same form: of the tensor itself if possible.
std::optional<ChunkId> chunk_with_same_item_form(const CheckInput& input, TensorId tensor) {
  const Checkpoint& checkpoint = input.checkpoint;
  auto is_there = [&](ChunkId chunk) {
    auto item = checkpoint.item(chunk);
    return item && is_reachable(checkpoint, *item);
  };
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    if (is_there(chunk)) return chunk;
  }
  for (TensorId other : each_tensor(input)) {
    if (checkpoint.dtype(other) != checkpoint.dtype(tensor)) continue;
    for (ChunkId chunk : checkpoint.chunks(other)) {
      if (is_there(chunk)) return chunk;
    }
  }
  return std::nullopt;
}

struct UnlistedTileCheck {
  const CheckInput& input;
  const MultiplyClaimedRanges claims;
  std::size_t bytes_left_to_read = kMaxRead;

  // Returns the reason, or empty and the chunk in `tile`.
  std::string why_not(TensorId tensor, const UnclaimedStorageRecord& unclaimed,
                      UnlistedChunk& tile) {
    const Checkpoint& checkpoint = input.checkpoint;
    if (!is_reachable(checkpoint, unclaimed.item)) return "its bytes are missing";
    if (claims.is_claimed_twice(unclaimed.item)) return "another record uses bytes of its item";
    if (bytes_left_to_read == 0) return "too many records are like it to read them all";
    --bytes_left_to_read;
    auto header = read_orphan_header(checkpoint, tile.like, unclaimed.item);
    if (!header) return "its item cannot be read: it " + header.error().message;
    if (header->dtype != checkpoint.dtype(tensor))
      return "its item is " + std::string(name(header->dtype)) + ", the tensor " +
             std::string(name(checkpoint.dtype(tensor)));
    tile.box = Box{*unclaimed.offsets, header->sizes};
    if (!is_inside(tile.box.offsets, tile.box.sizes, checkpoint.shape(tensor)))
      return "an item of size " + to_text(header->sizes) + " there would reach outside the tensor";
    tile.file = unclaimed.item.file;
    tile.offset = static_cast<std::uint64_t>(unclaimed.item.offset);
    tile.length = static_cast<std::uint64_t>(unclaimed.item.length);
    return "";
  }
};

// Boxes of chunks with data; `left_out` counts the others.
std::vector<Box> boxes_with_items(const Checkpoint& checkpoint, TensorId tensor,
                                  std::size_t& left_out) {
  std::vector<Box> boxes;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    if (checkpoint.item(chunk))
      boxes.push_back(box_of(checkpoint, chunk));
    else if (volume(checkpoint.sizes(chunk)) != 0)
      ++left_out;
  }
  return boxes;
}

bool completes_tiling(const Checkpoint& checkpoint, const UnlistedChunks& relisted,
                      std::vector<Box> boxes) {
  ExtentsView shape = checkpoint.shape(relisted.tensor);
  for (const UnlistedChunk& tile : relisted.tiles) boxes.push_back(tile.box);
  return std::all_of(boxes.begin(), boxes.end(),
                     [&](const Box& box) { return is_inside(box.offsets, box.sizes, shape); }) &&
         tiles_exactly(boxes, shape);
}

void check_unlisted_tiles(UnlistedTileCheck& judge, TensorId tensor,
                          const std::vector<std::size_t>& unclaimed_records, UnlistedTiles& out) {
  const Checkpoint& checkpoint = judge.input.checkpoint;
  auto like = chunk_with_same_item_form(judge.input, tensor);
  UnlistedChunks relisted{tensor, {}};
  bool all = true;
  for (std::size_t i : unclaimed_records) {
    UnlistedChunk tile;
    tile.like = like.value_or(ChunkId{});
    std::string why = like ? judge.why_not(tensor, checkpoint.unclaimed_records()[i], tile)
                           : "no other item of its dtype shows how items are written";
    all = all && why.empty();
    if (why.empty())
      relisted.tiles.push_back(std::move(tile));
    else
      out.why_not[i] = std::move(why);
  }
  std::size_t left_out = 0;
  auto boxes = boxes_with_items(checkpoint, tensor, left_out);
  if (all && completes_tiling(checkpoint, relisted, std::move(boxes))) {
    out.placed.insert(unclaimed_records.begin(), unclaimed_records.end());
    if (left_out != 0) out.misplaced.insert(tensor);
    out.tensors.push_back(std::move(relisted));
    return;
  }
  for (std::size_t i : unclaimed_records)
    out.why_not.try_emplace(i, "with it the chunks would not cover " +
                                   to_text(checkpoint.shape(tensor)) + " exactly once");
}

}  // namespace

UnlistedTiles find_unlisted_tiles(const CheckInput& input) {
  UnlistedTiles out;
  const Checkpoint& checkpoint = input.checkpoint;
  if (input.headers.empty() || checkpoint.unclaimed_records().empty() ||
      !checkpoint.format().traits.has_index || checkpoint.format().rewrite != Rewrite::kIndex)
    return out;
  ByTensor unclaimed_records = unclaimed_records_by_tensor(checkpoint);
  if (unclaimed_records.empty()) return out;
  UnlistedTileCheck judge{input, MultiplyClaimedRanges(input)};
  for (const auto& [tensor, records] : each_of(unclaimed_records, input))
    check_unlisted_tiles(judge, tensor, records, out);
  return out;
}

}  // namespace shw
