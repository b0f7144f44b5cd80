#include "core/facts/cut_orders.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/facts/spec_layout.h"

namespace shw {
namespace {

// Axes that cut something into more than one part; nothing unless two of them cut one dimension.
std::vector<std::size_t> competing(const SpecEntry& entry) {
  auto order = cut_order(entry);
  if (!order) return {};
  std::vector<std::size_t> axes;
  std::map<std::size_t, int> cuts;
  for (std::size_t axis : *order) {
    auto d = cut_dim(entry.placements[axis], entry.shape.size());
    if (!d || entry.mesh->axes[axis].size < 2) continue;
    axes.push_back(axis);
    ++cuts[*d];
  }
  bool two =
      std::any_of(cuts.begin(), cuts.end(), [](const auto& item) { return item.second > 1; });
  // Five axes are more than anybody shards one tensor by; 120 orders are enough to try.
  if (!two || axes.size() > 5) return {};
  return axes;
}

// Where each chunk belongs, if all lie as `order` cuts and at least one is elsewhere than the spec
// says. Nothing is allocated for a chunk before that is known: there may be millions.
std::vector<Box> explained_by(const Checkpoint& c, TensorId tensor, const RankMap& ranks,
                              const Cutter& saved, const Cutter& expected) {
  bool differs = false;
  for (ChunkId chunk : c.chunks(tensor)) {
    ExtentsView offsets = c.offsets(chunk), sizes = c.sizes(chunk);
    if (volume(sizes) == 0) continue;
    auto writer = c.writer(chunk);
    auto rank = writer ? ranks.of(*writer) : std::nullopt;
    if (!rank || !saved.gives(*rank, offsets, sizes)) return {};
    if (expected.gives(*rank, offsets, sizes)) continue;
    if (!expected.gives_sizes(*rank, sizes)) return {};
    differs = true;
  }
  if (!differs) return {};
  std::vector<Box> boxes;
  boxes.reserve(c.chunks(tensor).size());
  for (ChunkId chunk : c.chunks(tensor)) {
    bool empty = volume(c.sizes(chunk)) == 0;
    boxes.push_back(empty ? saved_box(c, chunk) : expected.box(*ranks.of(*c.writer(chunk))));
  }
  return boxes;
}

std::optional<OtherOrder> other_order(const CheckInput& input, TensorId tensor) {
  const Checkpoint& c = input.checkpoint;
  if (c.chunks(tensor).size() < 2 || !c.writers_are_owners(tensor)) return std::nullopt;
  const SpecEntry* entry = layout_of(input, c.fqn(tensor));
  if (entry == nullptr || !same(entry->shape, c.shape(tensor))) return std::nullopt;
  std::vector<std::size_t> expected = competing(*entry);
  if (expected.empty()) return std::nullopt;
  RankMap ranks(input, *entry->mesh);
  Cutter as_expected(*entry, expected);
  std::vector<std::size_t> order = expected;
  std::sort(order.begin(), order.end());
  do {
    if (order == expected) continue;
    std::vector<Box> boxes = explained_by(c, tensor, ranks, Cutter(*entry, order), as_expected);
    if (!boxes.empty()) return OtherOrder{tensor, entry, expected, order, std::move(boxes)};
  } while (std::next_permutation(order.begin(), order.end()));
  return std::nullopt;
}

}  // namespace

std::string order_text(const Mesh& mesh, const std::vector<std::size_t>& order) {
  std::string text;
  for (std::size_t axis : order) text += (text.empty() ? "" : ", then ") + mesh.axes[axis].name;
  return text;
}

std::vector<OtherOrder> find_other_orders(const CheckInput& input) {
  std::vector<OtherOrder> out;
  if (input.spec == nullptr) return out;
  std::set<TensorId> found;
  for (TensorId tensor : each_tensor(input)) {
    auto item = other_order(input, tensor);
    if (!item) continue;
    found.insert(item->tensor);
    out.push_back(std::move(*item));
  }
  // The same picture is healthy where another mesh saved it: then other tensors disagree as well.
  // Those of the same mesh are asked; where there are none, all.
  std::map<std::string, bool> contradicted;
  std::erase_if(out, [&](const OtherOrder& item) {
    auto [at, added] = contradicted.try_emplace(to_text(*item.entry->mesh));
    if (added) {
      Agreement agreement = layout_agreement(input, found, &*item.entry->mesh);
      if (agreement.says_nothing()) agreement = layout_agreement(input, found);
      at->second = agreement.contradicts();
    }
    return at->second;
  });
  return out;
}

}  // namespace shw
