#include "core/facts/states/states_spec.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/base/cancellable_range.h"

namespace shw {
namespace {

std::vector<ChunkId> chunks_by_offset(const Checkpoint& c, TensorId tensor) {
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

// Chunks are ordered by writer, and any replica may have written.
bool has_equal_chunks(const Checkpoint& c, TensorId a, TensorId b) {
  auto ours = c.chunks(a), theirs = c.chunks(b);
  if (!same(c.shape(a), c.shape(b)) || ours.size() != theirs.size()) return false;
  bool in_order = true;
  for (std::uint32_t i = 0; in_order && i < ours.size(); ++i)
    in_order = is_same_box(c, ours[i], theirs[i]);
  if (in_order) return true;
  std::vector<ChunkId> first = chunks_by_offset(c, a), second = chunks_by_offset(c, b);
  return std::equal(first.begin(), first.end(), second.begin(),
                    [&](ChunkId x, ChunkId y) { return is_same_box(c, x, y); });
}

// The chunk sizes that each writer saved of a tensor. The key nullopt has the sizes of all writers.
std::map<std::optional<std::uint32_t>, std::set<Extents>> tile_sizes(const Checkpoint& c,
                                                                     TensorId tensor) {
  std::map<std::optional<std::uint32_t>, std::set<Extents>> sizes;
  for (ChunkId chunk : c.chunks(tensor)) {
    if (volume(c.sizes(chunk)) == 0) continue;
    sizes[std::nullopt].insert(copy_of(c.sizes(chunk)));
    if (auto writer = c.writer(chunk)) sizes[writer].insert(copy_of(c.sizes(chunk)));
  }
  return sizes;
}

bool is_shorter(ExtentsView a, ExtentsView b) {
  if (a.size() != b.size() || same(a, b)) return false;
  return std::equal(a.begin(), a.end(), b.begin(), [](auto x, auto y) { return x <= y; });
}

}  // namespace

bool is_smaller_than_parameter(const Checkpoint& c, const OptimizerState& state) {
  if (!state.parameter || !state.is_parameter_certain || state.role == StateRole::kOther)
    return false;
  if (!is_shorter(c.shape(state.state), c.shape(*state.parameter))) return false;
  const auto known = tile_sizes(c, *state.parameter);
  std::size_t tiles = 0;
  for (ChunkId tile : c.chunks(state.state)) {
    if (volume(c.sizes(tile)) == 0) continue;
    auto writer = c.writer(tile);
    auto own = known.find(writer);
    if (own == known.end()) own = known.find(std::nullopt);  // a replica wrote for this rank
    if (!writer || own == known.end() || !own->second.contains(copy_of(c.sizes(tile))))
      return false;
    ++tiles;
  }
  return tiles > 1;
}

namespace {

// True if the spec applies to the state: equal chunks, or one of state and parameter lost an axis.
bool must_follow_spec(const Checkpoint& c, const OptimizerState& state, const SpecEntry& entry) {
  if (has_equal_chunks(c, state.state, *state.parameter)) return true;
  if (same(c.shape(*state.parameter), entry.shape)) return is_smaller_than_parameter(c, state);
  return same(c.shape(state.state), entry.shape) && c.chunks(state.state).size() > 1;
}

}  // namespace

std::shared_ptr<const Spec> with_states(const Checkpoint& checkpoint,
                                        std::shared_ptr<const Spec> spec,
                                        const std::vector<OptimizerState>& states,
                                        const Progress* progress) {
  std::shared_ptr<Spec> more;
  for (const OptimizerState& state : cancellable_range(states, progress)) {
    if (!state.parameter || !state.is_parameter_certain) continue;
    const SpecEntry* entry = spec->find(checkpoint.fqn(*state.parameter));
    if (entry == nullptr || spec->find(checkpoint.fqn(state.state)) != nullptr) continue;
    if (!must_follow_spec(checkpoint, state, *entry)) continue;
    if (more == nullptr) more = std::make_shared<Spec>(*spec);
    SpecEntry& own = more->entries[std::string(checkpoint.fqn(state.state))] = *entry;
    own.dtype.reset();
  }
  return more != nullptr ? more : spec;
}

}  // namespace shw
