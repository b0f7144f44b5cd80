#include "core/facts/states/optimizer_states.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "core/base/cancellable_range.h"
#include "core/base/parse_text.h"

namespace shw {
namespace {

// True if the state has its parameter's shape, the shape of one of its chunks, or is empty (from a
// rank without a chunk).
bool could_be_state_of_parameter(const Checkpoint& checkpoint, TensorId state, TensorId parameter) {
  ExtentsView shape = checkpoint.shape(state);
  if (shape.empty()) return true;  // a step counter
  if (same(shape, checkpoint.shape(parameter))) return true;
  if (shape.size() != checkpoint.shape(parameter).size()) return false;
  for (ChunkId chunk : checkpoint.chunks(parameter)) {
    if (same(shape, checkpoint.sizes(chunk))) return true;
  }
  std::size_t differing = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != checkpoint.shape(parameter)[d]) ++differing;
  }
  return differing == 1 && volume(shape) == 0;
}

bool same_chunks(const Checkpoint& checkpoint, TensorId a, TensorId b) {
  auto first = checkpoint.chunks(a), second = checkpoint.chunks(b);
  if (first.size() != second.size() || !same(checkpoint.shape(a), checkpoint.shape(b)))
    return false;
  for (std::uint32_t i = 0; i < first.size(); ++i) {
    if (!same(checkpoint.offsets(first[i]), checkpoint.offsets(second[i])) ||
        !same(checkpoint.sizes(first[i]), checkpoint.sizes(second[i])) ||
        (volume(checkpoint.sizes(first[i])) != 0 &&
         checkpoint.writer(first[i]) != checkpoint.writer(second[i])))
      return false;
  }
  return true;
}

struct Indexed {
  std::uint32_t index = 0;
  std::vector<std::size_t> states;  // indices in the list of all states
};

bool fits(const Checkpoint& checkpoint, const std::vector<OptimizerState>& states,
          const Indexed& item, TensorId parameter) {
  return std::all_of(item.states.begin(), item.states.end(), [&](std::size_t s) {
    return could_be_state_of_parameter(checkpoint, states[s].state, parameter);
  });
}

// Indices count parameters in model order; buffers have no state. Compares the
// earliest and the latest order-preserving alignment: where they agree the answer is
// unique.
bool align_in_model_order(const Checkpoint& checkpoint, const std::vector<TensorId>& model,
                          const std::vector<Indexed>& indexed,
                          std::vector<OptimizerState>& states) {
  std::vector<std::size_t> earliest(indexed.size()), latest(indexed.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < indexed.size(); ++i, ++at) {
    while (at < model.size() && !fits(checkpoint, states, indexed[i], model[at])) ++at;
    if (at >= model.size()) return false;
    earliest[i] = at;
  }
  at = model.size();
  for (std::size_t i = indexed.size(); i-- > 0;) {
    do {
      if (at == 0) return false;
      --at;
    } while (!fits(checkpoint, states, indexed[i], model[at]));
    latest[i] = at;
  }
  for (std::size_t i = 0; i < indexed.size(); ++i) {
    TensorId first = model[earliest[i]], last = model[latest[i]];
    if (first != last && !same_chunks(checkpoint, first, last)) continue;
    for (std::size_t s : indexed[i].states) {
      states[s].parameter = first;
      states[s].is_parameter_certain = first == last;
    }
  }
  return true;
}

// The lowest rank that wrote a part: a tensor is listed in that rank's section.
std::optional<std::uint32_t> first_writer(const Checkpoint& checkpoint, TensorId tensor) {
  std::optional<std::uint32_t> lowest;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    auto writer = checkpoint.writer(chunk);
    if (writer && (!lowest || *writer < *lowest)) lowest = writer;
  }
  return lowest;
}

// torch records the tensors of rank 0 in model order, then those of rank 1. With
// replicas (HSDP, DDP) the order has gaps. False if a tensor of a lower rank
// follows.
bool are_in_order_of_model(const Checkpoint& checkpoint, const std::vector<TensorId>& model) {
  std::optional<std::uint32_t> last;
  bool is_by_rank = false;
  for (TensorId tensor : model) {
    auto writer = first_writer(checkpoint, tensor);
    if (!writer) continue;
    if (last && *writer < *last) return true;
    is_by_rank = is_by_rank || (last && *writer > *last);
    last = writer;
  }
  return !is_by_rank;
}

// The tensor that an index refers to; not sure if several are split alike.
struct ParameterMatch {
  std::optional<TensorId> parameter;
  bool is_sure = false;
};

std::vector<Box> boxes_in_order(const Checkpoint& checkpoint, TensorId tensor) {
  std::vector<Box> boxes;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    if (volume(checkpoint.sizes(chunk)) != 0) boxes.push_back(box_of(checkpoint, chunk));
  }
  std::sort(boxes.begin(), boxes.end(),
            [](const Box& a, const Box& b) { return a.offsets < b.offsets; });
  return boxes;
}

// Replicas may share the work, so writers may differ; but no rank wrote two boxes.
bool have_equal_writers(const Checkpoint& checkpoint, const std::vector<TensorId>& tensors) {
  const std::vector<Box> boxes = boxes_in_order(checkpoint, tensors.front());
  std::map<std::uint32_t, Box> held;
  for (TensorId tensor : tensors) {
    if (!same(checkpoint.shape(tensor), checkpoint.shape(tensors.front())) ||
        boxes_in_order(checkpoint, tensor) != boxes)
      return false;
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      auto writer = checkpoint.writer(chunk);
      if (!writer || volume(checkpoint.sizes(chunk)) == 0) continue;
      Box box = box_of(checkpoint, chunk);
      if (held.try_emplace(*writer, box).first->second != box) return false;
    }
  }
  return true;
}

// A state in several chunks is split like its parameter.
bool is_chunked_like_parameter(const Checkpoint& checkpoint,
                               const std::vector<OptimizerState>& states, const Indexed& item,
                               TensorId parameter) {
  const std::vector<Box> boxes = boxes_in_order(checkpoint, parameter);
  return std::all_of(item.states.begin(), item.states.end(), [&](std::size_t s) {
    const TensorId state = states[s].state;
    return checkpoint.chunks(state).size() < 2 || boxes_in_order(checkpoint, state) == boxes;
  });
}

ParameterMatch match_index_to_parameter(const Checkpoint& checkpoint,
                                        const std::vector<TensorId>& model, const Indexed& item,
                                        const std::vector<OptimizerState>& states) {
  std::vector<TensorId> found, alike;
  for (TensorId tensor : model) {
    if (!fits(checkpoint, states, item, tensor)) continue;
    found.push_back(tensor);
    if (is_chunked_like_parameter(checkpoint, states, item, tensor)) alike.push_back(tensor);
  }
  if (!alike.empty()) found = std::move(alike);
  if (found.empty() || (found.size() > 1 && !have_equal_writers(checkpoint, found))) return {};
  return {found.front(), found.size() == 1};
}

// If the order is unknown, matches by shapes that only one parameter has. Several indices with a
// shape of one parameter mean that another parameter is missing.
void match_by_shape(const Checkpoint& checkpoint, const std::vector<TensorId>& model,
                    const std::vector<Indexed>& indexed, std::vector<OptimizerState>& states) {
  auto shapes_of = [&](const Indexed& item) {
    std::set<std::vector<std::int64_t>> shapes;
    for (std::size_t s : item.states) {
      const ExtentsView sizes = checkpoint.shape(states[s].state);
      if (sizes.empty()) continue;
      std::vector<std::int64_t> shape(sizes.begin(), sizes.end());
      for (ChunkId chunk : checkpoint.chunks(states[s].state)) {
        const ExtentsView offsets = checkpoint.offsets(chunk);
        shape.insert(shape.end(), offsets.begin(), offsets.end());
      }
      shapes.insert(std::move(shape));
    }
    return shapes;
  };
  // By shapes and offsets of chunks: few groups, because layers are equal.
  std::map<std::set<std::vector<std::int64_t>>, ParameterMatch> by_shapes;
  std::map<TensorId, std::size_t> claims;
  std::vector<const ParameterMatch*> found;
  for (const Indexed& item : indexed) {
    auto [at, added] = by_shapes.try_emplace(shapes_of(item));
    if (added && !at->first.empty())
      at->second = match_index_to_parameter(checkpoint, model, item, states);
    if (at->second.parameter) ++claims[*at->second.parameter];
    found.push_back(&at->second);
  }
  for (std::size_t i = 0; i < indexed.size(); ++i) {
    if (!found[i]->parameter) continue;
    if (found[i]->is_sure && claims[*found[i]->parameter] > 1) continue;
    for (std::size_t s : indexed[i].states) {
      states[s].parameter = found[i]->parameter;
      states[s].is_parameter_certain = found[i]->is_sure;
    }
  }
}

void align_indices(const Checkpoint& checkpoint, const std::vector<TensorId>& model,
                   std::vector<OptimizerState>& states) {
  std::map<std::uint32_t, Indexed> by_index;
  for (std::size_t s = 0; s < states.size(); ++s) {
    auto index = parse_number<std::uint32_t>(states[s].key);
    if (!index || states[s].parameter) continue;
    by_index[*index].index = *index;
    by_index[*index].states.push_back(s);
  }
  if (by_index.empty()) return;
  std::vector<Indexed> indexed;
  for (auto& [index, item] : by_index) indexed.push_back(std::move(item));
  if (!are_in_order_of_model(checkpoint, model))
    return match_by_shape(checkpoint, model, indexed, states);
  if (align_in_model_order(checkpoint, model, indexed, states)) return;
  // Two groups, as with weight decay for matrices only: matrices first, then vectors.
  std::vector<TensorId> grouped = model;
  std::stable_partition(grouped.begin(), grouped.end(),
                        [&](TensorId tensor) { return checkpoint.shape(tensor).size() >= 2; });
  align_in_model_order(checkpoint, grouped, indexed, states);
}

}  // namespace

std::vector<OptimizerState> optimizer_states(const Checkpoint& checkpoint,
                                             const Progress* progress) {
  std::vector<OptimizerState> states;
  std::vector<TensorId> model;
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    auto path = parse_state_fqn(checkpoint.fqn(tensor));
    if (path) {
      states.push_back({tensor, std::nullopt, true, role_of_kind(path->kind),
                        std::string(path->kind), std::string(path->key)});
      continue;
    }
    model.push_back(tensor);
  }
  if (states.empty()) return states;
  std::unordered_map<std::string, std::optional<TensorId>> by_name;  // nullopt: ambiguous
  for (TensorId tensor : cancellable_range(model, progress)) {
    auto [found, added] = by_name.try_emplace(unwrapped_name(checkpoint.fqn(tensor)), tensor);
    if (!added) found->second.reset();
  }
  for (OptimizerState& state : cancellable_range(states, progress)) {
    auto found = by_name.find(unwrapped_name(state.key));
    if (found != by_name.end()) state.parameter = found->second;
  }
  if (!is_cancelled(progress)) align_indices(checkpoint, model, states);
  return states;
}

}  // namespace shw
