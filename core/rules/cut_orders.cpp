#include "core/rules/cut_orders.h"

#include <algorithm>
#include <map>

#include "core/rules/spec_layout.h"

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
// says.
std::vector<Box> explained_by(const RuleInput& input, TensorId tensor, const SpecEntry& entry,
                              const std::vector<std::size_t>& order,
                              const std::vector<std::size_t>& expected) {
  const Checkpoint& c = input.checkpoint;
  std::vector<Box> boxes;
  bool differs = false;
  for (ChunkId chunk : c.chunks(tensor)) {
    Box saved = saved_box(c, chunk);
    if (volume(saved.sizes) == 0) {
      boxes.push_back(saved);
      continue;
    }
    auto writer = c.writer(chunk);
    auto rank = writer ? rank_on(input, *entry.mesh, *writer) : std::nullopt;
    if (!rank) return {};
    if (box_in_order(entry.shape, *entry.mesh, entry.placements, order, *rank) != saved) return {};
    Box home = box_in_order(entry.shape, *entry.mesh, entry.placements, expected, *rank);
    if (home.sizes != saved.sizes) return {};
    differs = differs || home != saved;
    boxes.push_back(std::move(home));
  }
  if (!differs) return {};
  return boxes;
}

}  // namespace

std::string order_text(const Mesh& mesh, const std::vector<std::size_t>& order) {
  std::string text;
  for (std::size_t axis : order) text += (text.empty() ? "" : ", then ") + mesh.axes[axis].name;
  return text;
}

std::vector<OtherOrder> in_another_order(const RuleInput& input) {
  std::vector<OtherOrder> out;
  if (input.spec == nullptr) return out;
  const Checkpoint& c = input.checkpoint;
  for (std::uint32_t t = 0; t < c.tensor_count(); ++t) {
    TensorId tensor{t};
    if (c.chunks(tensor).size() < 2 || !c.writers_are_owners(tensor)) continue;
    const SpecEntry* entry = layout_of(input, c.fqn(tensor));
    if (entry == nullptr || !same(entry->shape, c.shape(tensor))) continue;
    std::vector<std::size_t> expected = competing(*entry);
    if (expected.empty()) continue;
    std::vector<std::size_t> order = expected;
    std::sort(order.begin(), order.end());
    do {
      if (order == expected) continue;
      std::vector<Box> boxes = explained_by(input, tensor, *entry, order, expected);
      if (boxes.empty()) continue;
      out.push_back({tensor, entry, expected, order, std::move(boxes)});
      break;
    } while (std::next_permutation(order.begin(), order.end()));
  }
  if (out.empty()) return out;
  // The same picture is healthy where another mesh saved it: then other tensors disagree as well.
  std::vector<std::string> names;
  for (const OtherOrder& item : out) names.emplace_back(c.fqn(item.tensor));
  if (layout_agreement(input, names).contradicts()) out.clear();
  return out;
}

}  // namespace shw
