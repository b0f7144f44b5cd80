#include "core/facts/layout/split_orders.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/facts/layout/spec_layout.h"
#include "core/mesh/torch_offset_bugs.h"

namespace shw {
namespace {

// Axes with more than one part; empty unless two of them split one dimension.
std::vector<std::size_t> axes_sharing_a_dim(const SpecEntry& entry) {
  auto order = split_axis_order(entry);
  if (!order) return {};
  std::vector<std::size_t> axes;
  std::map<std::size_t, int> cuts;
  for (std::size_t axis : *order) {
    auto d = sharded_dim_of(entry.placements[axis], entry.shape.size());
    if (!d || entry.mesh->axes[axis].size < 2) continue;
    axes.push_back(axis);
    ++cuts[*d];
  }
  bool two =
      std::any_of(cuts.begin(), cuts.end(), [](const auto& item) { return item.second > 1; });
  // No tensor is sharded by more than five axes; 120 orders are few enough to try.
  if (!two || axes.size() > 5) return {};
  return axes;
}

// A tensor whose chunks may match another split order.
struct SplitOrderCheck {
  const CheckInput& input;
  TensorId tensor{};
  const RankMap& ranks;
  const SplitLayout& expected;

  std::optional<std::int64_t> rank_of(ChunkId chunk) const {
    auto writer = input.checkpoint.writer(chunk);
    return writer ? ranks.rank_of_writer(*writer) : std::nullopt;
  }
};

struct MatchedSplitOrder {
  bool lies = false;       // all chunks match, and at least one is elsewhere than in the spec
  std::vector<Box> boxes;  // correct box of each chunk; empty unless known for all
};

enum class RankBoxMatch : std::uint8_t { kExpected, kRecorded, kUnknown };

// Compares the recorded sizes, then the sizes in the item's header, with those that the expected
// split order gives this rank. With uneven extents another split order gives other sizes.
RankBoxMatch match_chunk_sizes_on_rank(const SplitOrderCheck& q, ChunkId chunk, std::int64_t rank) {
  ExtentsView recorded = q.input.checkpoint.sizes(chunk);
  if (q.expected.produces_sizes(rank, recorded)) return RankBoxMatch::kExpected;
  if (index_of(chunk) >= q.input.headers.size()) return RankBoxMatch::kUnknown;
  const Result<ItemHeader>& header = q.input.headers[index_of(chunk)];
  if (!header) return RankBoxMatch::kUnknown;
  if (header->sizes.size() == recorded.size() && q.expected.produces_sizes(rank, header->sizes))
    return RankBoxMatch::kExpected;
  return same(header->sizes, recorded) ? RankBoxMatch::kRecorded : RankBoxMatch::kUnknown;
}

// Allocates nothing per chunk before all are known to match: there may be millions.
MatchedSplitOrder explained_by(const SplitOrderCheck& q, const SplitLayout& saved) {
  const Checkpoint& c = q.input.checkpoint;
  MatchedSplitOrder out;
  bool all_known = true, resized = false;
  for (ChunkId chunk : c.chunks(q.tensor)) {
    ExtentsView offsets = c.offsets(chunk), sizes = c.sizes(chunk);
    const bool empty = volume(sizes) == 0;
    auto rank = q.rank_of(chunk);
    if (!empty && (!rank || !saved.produces_box(*rank, offsets, sizes))) return {};
    if (!rank || q.expected.produces_box(*rank, offsets, sizes)) continue;
    RankBoxMatch held = match_chunk_sizes_on_rank(q, chunk, *rank);
    if (!empty && held == RankBoxMatch::kRecorded) return {};  // really split in this order
    all_known = all_known && held == RankBoxMatch::kExpected;
    resized = resized || !q.expected.produces_sizes(*rank, sizes);
    out.lies = out.lies || !empty;
  }
  if (!out.lies || !all_known) return out;
  std::int64_t elements = 0;
  out.boxes.reserve(c.chunks(q.tensor).size());
  for (ChunkId chunk : c.chunks(q.tensor)) {
    auto rank = q.rank_of(chunk);
    Box box = rank ? q.expected.box(*rank) : box_of(c, chunk);
    const bool stays = is_empty(box) && volume(c.sizes(chunk)) == 0;
    out.boxes.push_back(stays ? box_of(c, chunk) : std::move(box));
    elements += volume(out.boxes.back().sizes).value_or(0);
  }
  // Empty shards share one offset, and only one of them was kept in the metadata.
  if (resized && elements != volume(c.shape(q.tensor))) out.boxes.clear();
  return out;
}

// Stacked experts may be split in either order, so a deviation is reported. Other tensors: only if
// they are recorded left to right where the spec is strided. The reverse may be a spec of another
// layout that loads the checkpoint.
bool is_reportable_order(const DifferentOrder& item) {
  return is_expert(*item.entry) ||
         (item.entry->placements != as_plain_placements(item.entry->placements) &&
          std::is_sorted(item.saved.begin(), item.saved.end()));
}

// Finds the saved order; the boxes are empty if item sizes are unknown or wrong.
std::optional<DifferentOrder> different_order(const CheckInput& input, TensorId tensor) {
  const Checkpoint& c = input.checkpoint;
  if (c.chunks(tensor).size() < 2 || !c.writers_are_owners(tensor)) return std::nullopt;
  const SpecEntry* entry = layout_of(input, c.fqn(tensor));
  if (entry == nullptr || !same(entry->shape, c.shape(tensor))) return std::nullopt;
  std::vector<std::size_t> expected = axes_sharing_a_dim(*entry);
  if (expected.empty()) return std::nullopt;
  RankMap ranks(input, *entry->mesh);
  SplitLayout as_expected(*entry, expected);
  SplitOrderCheck question{input, tensor, ranks, as_expected};
  std::vector<std::size_t> order = expected;
  std::sort(order.begin(), order.end());
  do {
    if (order == expected) continue;
    MatchedSplitOrder found = explained_by(question, SplitLayout(*entry, order));
    if (found.lies) return DifferentOrder{tensor, entry, expected, order, std::move(found.boxes)};
  } while (std::next_permutation(order.begin(), order.end()));
  return std::nullopt;
}

// True if one axis of `ranks` ranks splits the tensor along one dimension, in rank order.
bool is_cut_by_one_axis(const Checkpoint& c, TensorId tensor, std::int64_t ranks) {
  const auto dim = single_split_dim(c, tensor);
  if (!dim) return false;
  for (ChunkId chunk : c.chunks(tensor)) {
    if (volume(c.sizes(chunk)) == 0) continue;
    auto writer = c.writer(chunk);
    if (!writer || *writer >= ranks) return false;
    Cut mine = chunk_of(c.shape(tensor)[*dim], ranks, *writer);
    if (c.offsets(chunk)[*dim] != mine.offset || c.sizes(chunk)[*dim] != mine.size) return false;
  }
  return true;
}

// True if all tensors outside the spec that several ranks wrote are split by one axis of all ranks.
// If the saver's mesh had several axes, some tensor would show one of them.
bool others_show_one_axis(const CheckInput& input, const Mesh& mesh) {
  constexpr int kTensors = 200;
  const Checkpoint& c = input.checkpoint;
  int looked_at = 0;
  for (TensorId tensor : each_tensor(input)) {
    if (looked_at == kTensors) break;
    if (layout_of(input, c.fqn(tensor)) != nullptr || c.chunks(tensor).size() < 2 ||
        !c.writers_are_owners(tensor))
      continue;
    if (!is_cut_by_one_axis(c, tensor, mesh.size())) return false;
    ++looked_at;
  }
  return looked_at > 0;
}

bool contradicts_tile_layout(const CheckInput& input, const std::set<TensorId>& found,
                             const Mesh& mesh) {
  Agreement agreement = layout_agreement(input, found, &mesh);
  if (agreement.has_no_votes()) agreement = layout_agreement(input, found);
  if (agreement.has_no_votes()) return others_show_one_axis(input, mesh);
  return agreement.contradicts();
}

}  // namespace

std::string order_text(const Mesh& mesh, const std::vector<std::size_t>& order) {
  std::string text;
  for (std::size_t axis : order) text += (text.empty() ? "" : ", then ") + mesh.axes[axis].name;
  return text;
}

std::vector<DifferentOrder> find_different_orders(const CheckInput& input) {
  std::vector<DifferentOrder> out;
  if (input.spec == nullptr) return out;
  std::set<TensorId> found;
  for (TensorId tensor : each_tensor(input)) {
    auto item = different_order(input, tensor);
    if (!item) continue;
    found.insert(item->tensor);
    if (!item->boxes.empty() && is_reportable_order(*item)) out.push_back(std::move(*item));
  }
  // A checkpoint of another mesh looks the same but is healthy; then other tensors disagree as
  // well. Checks tensors of the same mesh; without any, all tensors; if the spec has no others,
  // tensors outside the spec.
  std::map<std::string, bool> contradicted;
  std::erase_if(out, [&](const DifferentOrder& item) {
    auto [at, added] = contradicted.try_emplace(to_text(*item.entry->mesh));
    if (added) at->second = contradicts_tile_layout(input, found, *item.entry->mesh);
    return at->second;
  });
  return out;
}

}  // namespace shw
