#include "core/facts/states/optimizer_states.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

#include "core/base/until_cancelled.h"

namespace shw {
namespace {

std::optional<std::uint32_t> as_index(std::string_view key) {
  std::uint32_t value = 0;
  auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), value);
  if (code != std::errc{} || end != key.data() + key.size()) return std::nullopt;
  return value;
}

// A state may have its parameter's shape, the shape of one of its chunks, or be empty (what a rank
// without a chunk saves): everything that rules later look at more closely.
bool could_belong(const Checkpoint& checkpoint, TensorId state, TensorId parameter) {
  ExtentsView shape = checkpoint.shape(state);
  if (shape.empty()) return true;  // step: says nothing
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
  std::vector<std::size_t> states;  // into the list of all states
};

// Indices count parameters in the model's order; some model tensors (buffers) have no state. The
// earliest and the latest alignment that keep the order are compared: where they agree there is one
// answer.
bool align(const Checkpoint& checkpoint, const std::vector<TensorId>& model,
           const std::vector<Indexed>& indexed, std::vector<OptimizerState>& states) {
  auto fits = [&](const Indexed& item, TensorId parameter) {
    return std::all_of(item.states.begin(), item.states.end(), [&](std::size_t s) {
      return could_belong(checkpoint, states[s].state, parameter);
    });
  };
  std::vector<std::size_t> earliest(indexed.size()), latest(indexed.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < indexed.size(); ++i, ++at) {
    while (at < model.size() && !fits(indexed[i], model[at])) ++at;
    if (at >= model.size()) return false;
    earliest[i] = at;
  }
  at = model.size();
  for (std::size_t i = indexed.size(); i-- > 0;) {
    do {
      if (at == 0) return false;
      --at;
    } while (!fits(indexed[i], model[at]));
    latest[i] = at;
  }
  for (std::size_t i = 0; i < indexed.size(); ++i) {
    TensorId first = model[earliest[i]], last = model[latest[i]];
    if (first != last && !same_chunks(checkpoint, first, last)) continue;
    for (std::size_t s : indexed[i].states) {
      states[s].parameter = first;
      states[s].parameter_is_sure = first == last;
    }
  }
  return true;
}

void align_indices(const Checkpoint& checkpoint, const std::vector<TensorId>& model,
                   std::vector<OptimizerState>& states) {
  std::map<std::uint32_t, Indexed> by_index;
  for (std::size_t s = 0; s < states.size(); ++s) {
    auto index = as_index(states[s].key);
    if (!index || states[s].parameter) continue;
    by_index[*index].index = *index;
    by_index[*index].states.push_back(s);
  }
  if (by_index.empty()) return;
  std::vector<Indexed> indexed;
  for (auto& [index, item] : by_index) indexed.push_back(std::move(item));
  if (align(checkpoint, model, indexed, states)) return;
  // Two groups, as with weight decay on matrices only: they come first, vectors follow.
  std::vector<TensorId> grouped = model;
  std::stable_partition(grouped.begin(), grouped.end(),
                        [&](TensorId tensor) { return checkpoint.shape(tensor).size() >= 2; });
  align(checkpoint, grouped, indexed, states);
}

}  // namespace

std::vector<OptimizerState> optimizer_states(const Checkpoint& checkpoint,
                                             const Progress* progress) {
  std::vector<OptimizerState> states;
  std::vector<TensorId> model;
  for (TensorId tensor : until_cancelled(checkpoint.tensors(), progress)) {
    auto path = parse_state_fqn(checkpoint.fqn(tensor));
    if (path) {
      states.push_back({tensor, std::nullopt, true, role_of_kind(path->kind),
                        std::string(path->kind), std::string(path->key)});
      continue;
    }
    model.push_back(tensor);
  }
  if (states.empty()) return states;
  std::unordered_map<std::string, std::optional<TensorId>> by_name;  // nothing: ambiguous
  for (TensorId tensor : until_cancelled(model, progress)) {
    auto [found, added] = by_name.try_emplace(bare_name(checkpoint.fqn(tensor)), tensor);
    if (!added) found->second.reset();
  }
  for (OptimizerState& state : until_cancelled(states, progress)) {
    auto found = by_name.find(bare_name(state.key));
    if (found != by_name.end()) state.parameter = found->second;
  }
  if (!is_cancelled(progress)) align_indices(checkpoint, model, states);
  return states;
}

}  // namespace shw
