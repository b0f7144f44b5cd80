#include "core/rules/optimizer_states.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <unordered_map>

namespace shw {
namespace {

constexpr std::array<std::string_view, 6> kMoments{"exp_avg",        "exp_avg_sq", "exp_inf",
                                                   "max_exp_avg_sq", "exp_avgs",   "exp_avg_sqs"};
constexpr std::array<std::string_view, 9> kMasters{
    "master_param", "master_params", "master",         "master_weight", "master_weights",
    "fp32_param",   "main_param",    "fp32_from_fp16", "float32_param"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_wrapper(std::string_view part) {
  return part == "_orig_mod" || part == "_fsdp_wrapped_module" ||
         part == "_checkpoint_wrapped_module" || part == "_forward_module";
}

// "model", "module", "model0", "model_pp1": what stands before a parameter's own name.
bool is_root(std::string_view part) {
  if (part == "model" || part == "module") return true;
  if (!part.starts_with("model")) return false;
  part.remove_prefix(5);
  if (part.starts_with("_pp")) part.remove_prefix(3);
  return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view next_part(std::string_view& rest) {
  std::size_t dot = rest.find('.');
  std::string_view part = rest.substr(0, dot);
  rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(dot + 1);
  return part;
}

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

std::optional<StatePath> parse_state_fqn(std::string_view fqn) {
  std::string_view rest = fqn;
  std::string_view before;
  for (int depth = 0; depth < 4 && !rest.empty(); ++depth) {
    std::string_view part = next_part(rest);
    bool of_optimizer = depth == 0 || before.find("optim") != std::string_view::npos;
    if (part == "state" && of_optimizer) {
      std::string_view after = rest;
      std::string_view first = next_part(after);
      if (after.empty()) return std::nullopt;
      if (contains(kMoments, first) || contains(kMasters, first)) return StatePath{after, first};
      std::size_t dot = rest.rfind('.');
      return StatePath{rest.substr(0, dot), rest.substr(dot + 1)};
    }
    before = part;
  }
  return std::nullopt;
}

StateRole role_of_kind(std::string_view kind) {
  if (contains(kMoments, kind)) return StateRole::kMoment;
  if (contains(kMasters, kind)) return StateRole::kMaster;
  return StateRole::kOther;
}

std::string bare_name(std::string_view fqn) {
  std::string bare;
  while (!fqn.empty()) {
    std::string_view part = next_part(fqn);
    if (is_wrapper(part) || (bare.empty() && is_root(part) && !fqn.empty())) continue;
    if (!bare.empty()) bare += '.';
    bare += part;
  }
  return bare;
}

std::vector<OptimizerState> optimizer_states(const Checkpoint& checkpoint) {
  std::vector<OptimizerState> states;
  std::vector<TensorId> model;
  std::unordered_map<std::string, std::optional<TensorId>> by_name;  // nothing: ambiguous
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    TensorId tensor{t};
    auto path = parse_state_fqn(checkpoint.fqn(tensor));
    if (path) {
      states.push_back({tensor, std::nullopt, true, role_of_kind(path->kind),
                        std::string(path->kind), std::string(path->key)});
      continue;
    }
    model.push_back(tensor);
    auto [found, added] = by_name.try_emplace(bare_name(checkpoint.fqn(tensor)), tensor);
    if (!added) found->second.reset();
  }
  for (OptimizerState& state : states) {
    auto found = by_name.find(bare_name(state.key));
    if (found != by_name.end()) state.parameter = found->second;
  }
  align_indices(checkpoint, model, states);
  return states;
}

}  // namespace shw
