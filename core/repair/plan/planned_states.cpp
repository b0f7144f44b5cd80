#include "core/repair/plan/planned_states.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "core/base/cancellable_range.h"
#include "core/facts/layout/retained_chunks.h"
#include "core/facts/states/optimizer_states.h"

namespace shw {
namespace {

using Planned = std::map<TensorId, const Diagnosis*>;

template <class D>
const D* diagnosis_of(const Planned& planned, TensorId tensor) {
  auto found = planned.find(tensor);
  return found == planned.end() ? nullptr : std::get_if<D>(found->second);
}

// True if rows that one rank wrote together are apart afterwards.
bool moves_inside_chunks(const Checkpoint& c, const Diagnosis& diagnosis) {
  if (std::holds_alternative<Transposed>(diagnosis)) return true;
  const auto* blocks = std::get_if<BlocksPermuted>(&diagnosis);
  if (blocks == nullptr) return false;
  for (ChunkId chunk : c.chunks(blocks->tensor)) {
    ExtentsView sizes = c.sizes(chunk);
    if (blocks->dim < sizes.size() && sizes[blocks->dim] > blocks->block) return true;
  }
  return false;
}

// True if the retained chunks of the state are where the relabelled parameter's chunks of the same
// rank go. For a rank that wrote nothing of the parameter, the layout must tell the place.
bool follow_moved_chunks(const Checkpoint& c, const WrongBoxes& parameter, const PartlyLost& state,
                         bool has_layout) {
  return std::all_of(
      state.retained_chunks.begin(), state.retained_chunks.end(),
      [&](const RetainedChunk& retained_chunk) {
        bool wrote_any = false, lies_there = false;
        std::size_t at = 0;
        for (ChunkId chunk : c.chunks(parameter.tensor)) {
          if (at == parameter.boxes.size()) return false;
          const Box& box = parameter.boxes[at++];
          if (c.writer(chunk) != c.writer(retained_chunk.chunk) || is_empty(box)) continue;
          wrote_any = true;
          lies_there = lies_there || box == Box{retained_chunk.at, retained_chunk.source.sizes};
        }
        return wrote_any ? lies_there : has_layout;
      });
}

// Reason why the state cannot stay in the plan; empty if it can.
std::string why_not(const Checkpoint& c, const Spec* spec, const PartlyLost& state,
                    const Diagnosis& parameter) {
  const std::string name(c.fqn(tensor_of(parameter)));
  if (moves_inside_chunks(c, parameter))
    return "this repair moves rows of its parameter " + name +
           " inside of chunks, and rows of the state would have to follow";
  if (std::holds_alternative<Renamed>(parameter)) return {};
  const SpecEntry* entry = spec == nullptr ? nullptr : spec->find(name);
  // A reference without mesh and placements does not tell which rank has which rows.
  const bool has_layout = entry != nullptr && entry->shape == state.expected && entry->mesh &&
                          !entry->placements.empty();
  const auto* moved = std::get_if<WrongBoxes>(&parameter);
  if (moved != nullptr ? follow_moved_chunks(c, *moved, state, has_layout) : has_layout) return {};
  // Parameter and state are placed by the same rule for ranks.
  const auto* part = std::get_if<PartlyLost>(&parameter);
  if (part != nullptr && part->expected == state.expected) return {};
  return "this repair changes its parameter " + name +
         " too, so the parameter's chunks do not show where the state belongs: give a spec "
         "(--spec), or check the result again";
}

// New boxes of the chunks that `writer` wrote of a tensor that is relabelled.
std::vector<Box> new_boxes_of_writer(const Checkpoint& c, const WrongBoxes& moved,
                                     std::uint32_t writer) {
  std::vector<Box> boxes;
  std::size_t at = 0;
  for (ChunkId chunk : c.chunks(moved.tensor)) {
    if (at == moved.boxes.size()) break;
    const Box& box = moved.boxes[at++];
    if (c.writer(chunk) == writer && !is_empty(box)) boxes.push_back(box);
  }
  return boxes;
}

bool changes_any_box(const Checkpoint& c, const WrongBoxes& moved) {
  std::size_t at = 0;
  for (ChunkId chunk : c.chunks(moved.tensor)) {
    if (at == moved.boxes.size()) return false;
    if (moved.boxes[at++] != box_of(c, chunk)) return true;
  }
  return false;
}

// True unless another state of the parameter moves to other rows. That state's wrong places come
// from the same writer as the parameter's, by which this state was placed, so each rank must have
// the same rows of both.
bool agrees_with_moved_state(const Checkpoint& c, const PartlyLost& state,
                             const WrongBoxes& moved) {
  if (!same(moved.expected, state.expected) || !changes_any_box(c, moved)) return true;
  return std::all_of(state.retained_chunks.begin(), state.retained_chunks.end(),
                     [&](const RetainedChunk& retained_chunk) {
                       const auto writer = c.writer(retained_chunk.chunk);
                       const std::vector<Box> boxes =
                           writer ? new_boxes_of_writer(c, moved, *writer) : std::vector<Box>{};
                       return std::any_of(boxes.begin(), boxes.end(), [&](const Box& box) {
                         return intersect(box, {retained_chunk.at, retained_chunk.source.sizes}) ==
                                Box{retained_chunk.at, retained_chunk.source.sizes};
                       });
                     });
}

using Siblings = std::map<TensorId, std::vector<const WrongBoxes*>>;  // by parameter

Siblings moved_states(const std::vector<OptimizerState>& states, const Planned& planned) {
  Siblings siblings;
  for (const OptimizerState& state : states) {
    const auto* moved = diagnosis_of<WrongBoxes>(planned, state.state);
    if (moved != nullptr && state.parameter) siblings[*state.parameter].push_back(moved);
  }
  return siblings;
}

std::string placement_reason(const Checkpoint& c, const PartlyLost& state, TensorId parameter,
                             const Siblings& siblings) {
  auto found = siblings.find(parameter);
  if (found == siblings.end()) return {};
  for (const WrongBoxes* moved : found->second) {
    if (agrees_with_moved_state(c, state, *moved)) continue;
    return "this repair moves " + std::string(c.fqn(moved->tensor)) +
           ", another state of its parameter, and its rank holds different rows of that one, so "
           "the parameter's chunks do not show where this state belongs";
  }
  return {};
}

// The permuted blocks as retained chunks, if no chunk spans two blocks.
std::optional<PartlyLost> blocks_as_retained_chunks(const Checkpoint& c,
                                                    const BlocksPermuted& blocks) {
  PartlyLost part{blocks.tensor, copy_of(c.shape(blocks.tensor)), {}, {}};
  std::vector<std::int64_t> place(blocks.order.size(), -1);
  for (std::size_t to = 0; to < place.size(); ++to) {
    auto from = static_cast<std::size_t>(blocks.order[to]);
    if (from < place.size()) place[from] = static_cast<std::int64_t>(to);
  }
  for (ChunkId chunk : c.chunks(blocks.tensor)) {
    Extents at = copy_of(c.offsets(chunk));
    if (blocks.block < 1 || blocks.dim >= at.size() || c.sizes(chunk).size() != at.size() ||
        at[blocks.dim] < 0)
      return std::nullopt;
    std::int64_t& row = at[blocks.dim];
    auto from = static_cast<std::size_t>(row / blocks.block);
    if (row % blocks.block + c.sizes(chunk)[blocks.dim] > blocks.block) return std::nullopt;
    if (volume(c.sizes(chunk)) == 0) continue;
    if (from >= place.size() || place[from] < 0) return std::nullopt;
    row = place[from] * blocks.block + row % blocks.block;
    part.retained_chunks.push_back(whole_retained_chunk(chunk, c.sizes(chunk), at));
  }
  return part;
}

// A diagnosis that moves chunks without losing elements, expressed as retained chunks.
std::optional<PartlyLost> as_retained_chunks(const Checkpoint& c, const Diagnosis& diagnosis) {
  if (const auto* part = std::get_if<PartlyLost>(&diagnosis)) return *part;
  if (const auto* blocks = std::get_if<BlocksPermuted>(&diagnosis))
    return blocks_as_retained_chunks(c, *blocks);
  const auto* moved = std::get_if<WrongBoxes>(&diagnosis);
  if (moved == nullptr) return std::nullopt;
  PartlyLost part{moved->tensor, moved->expected, {}, {}};
  std::size_t at = 0;
  for (ChunkId chunk : c.chunks(moved->tensor)) {
    if (at == moved->boxes.size()) return std::nullopt;
    const Box& box = moved->boxes[at++];
    if (!same(box.sizes, c.sizes(chunk))) return std::nullopt;
    part.retained_chunks.push_back(whole_retained_chunk(chunk, c.sizes(chunk), box.offsets));
  }
  return part;
}

}  // namespace

std::map<TensorId, std::string> states_of_moved_parameters(const Checkpoint& checkpoint,
                                                           const Spec* spec, const Planned& planned,
                                                           const Progress* progress) {
  std::map<TensorId, std::string> out;
  bool any = std::any_of(planned.begin(), planned.end(), [](const auto& item) {
    return std::holds_alternative<PartlyLost>(*item.second);
  });
  if (!any || planned.size() < 2) return out;
  const std::vector<OptimizerState> states = optimizer_states(checkpoint, progress);
  const Siblings siblings = moved_states(states, planned);
  for (const OptimizerState& state : cancellable_range(states, progress)) {
    const auto* part = diagnosis_of<PartlyLost>(planned, state.state);
    if (part == nullptr || !state.parameter) continue;
    auto parameter = planned.find(*state.parameter);
    std::string why = parameter != planned.end()
                          ? why_not(checkpoint, spec, *part, *parameter->second)
                          : placement_reason(checkpoint, *part, *state.parameter, siblings);
    if (!why.empty()) out.emplace(state.state, std::move(why));
  }
  return out;
}

std::vector<PartlyLost> plan_common_moment_rows(const Checkpoint& checkpoint,
                                                const Planned& planned,
                                                const std::set<TensorId>& named) {
  std::vector<PartlyLost> parts;
  std::vector<std::size_t> moments;
  std::vector<std::int64_t> kept;
  bool any_lost = false;
  for (const auto& [tensor, diagnosis] : planned) {
    auto path = parse_state_fqn(checkpoint.fqn(tensor));
    if (!path || role_of_kind(path->kind) != StateRole::kMoment) continue;
    auto part = as_retained_chunks(checkpoint, *diagnosis);
    if (!part) continue;
    LostCount loss = loss_of(*part);
    any_lost = any_lost || loss.lost != 0;
    kept.push_back(loss.kept);
    moments.push_back(parts.size());
    parts.push_back(std::move(*part));
  }
  std::vector<PartlyLost> changed;
  if (!any_lost) return changed;
  keep_common_moments(checkpoint, {}, moments, parts, named);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i >= kept.size() || loss_of(parts[i]).kept != kept[i])
      changed.push_back(std::move(parts[i]));
  }
  return changed;
}

}  // namespace shw
