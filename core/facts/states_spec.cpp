#include "core/facts/states_spec.h"

#include <algorithm>
#include <string>

#include "core/base/until_cancelled.h"

namespace shw {
namespace {

std::vector<ChunkId> by_place(const Checkpoint& c, TensorId tensor) {
  std::vector<ChunkId> chunks;
  for (ChunkId chunk : c.chunks(tensor)) chunks.push_back(chunk);
  std::sort(chunks.begin(), chunks.end(), [&](ChunkId a, ChunkId b) {
    ExtentsView x = c.offsets(a), y = c.offsets(b);
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
  });
  return chunks;
}

bool is_same_box(const Checkpoint& c, ChunkId a, ChunkId b) {
  return same(c.offsets(a), c.offsets(b)) && same(c.sizes(a), c.sizes(b));
}

// The order of the chunks is that of their writers, and which replica wrote may differ.
bool lies_alike(const Checkpoint& c, TensorId a, TensorId b) {
  auto ours = c.chunks(a), theirs = c.chunks(b);
  if (!same(c.shape(a), c.shape(b)) || ours.size() != theirs.size()) return false;
  bool in_order = true;
  for (std::uint32_t i = 0; in_order && i < ours.size(); ++i)
    in_order = is_same_box(c, ours[i], theirs[i]);
  if (in_order) return true;
  std::vector<ChunkId> first = by_place(c, a), second = by_place(c, b);
  return std::equal(first.begin(), first.end(), second.begin(),
                    [&](ChunkId x, ChunkId y) { return is_same_box(c, x, y); });
}

}  // namespace

std::shared_ptr<const Spec> with_states(const Checkpoint& checkpoint,
                                        std::shared_ptr<const Spec> spec,
                                        const std::vector<OptimizerState>& states,
                                        const Progress* progress) {
  std::shared_ptr<Spec> more;
  for (const OptimizerState& state : until_cancelled(states, progress)) {
    if (!state.parameter || !state.parameter_is_sure) continue;
    const SpecEntry* entry = spec->find(checkpoint.fqn(*state.parameter));
    if (entry == nullptr || spec->find(checkpoint.fqn(state.state)) != nullptr) continue;
    if (!lies_alike(checkpoint, state.state, *state.parameter)) continue;
    if (more == nullptr) more = std::make_shared<Spec>(*spec);
    SpecEntry& own = more->entries[std::string(checkpoint.fqn(state.state))] = *entry;
    own.dtype.reset();
  }
  return more != nullptr ? more : spec;
}

}  // namespace shw
