#include "core/facts/states/adjacent_optimizer.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/checked.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/trainer_names.h"
#include "core/model/state_path.h"

namespace shw {
namespace {

constexpr std::size_t kMaxOptimizers = 8;  // files
// Limit: models have about ten distinct shapes; above it nothing is reported.
constexpr std::size_t kMaxShapes = 256;
constexpr std::int64_t kMaxStateParts = 1024;  // ranks per tensor

// Parses the path {..., "state", 3, "exp_avg"}.
std::optional<AdjacentState> parse_adjacent_state(TorchFileTensor tensor) {
  if (tensor.sizes.empty() || tensor.path.size() < 3) return std::nullopt;
  const std::size_t last = tensor.path.size() - 1;
  if (path_part_text(tensor.path[last - 2]) != "state") return std::nullopt;
  AdjacentState state{path_part_text(tensor.path[last - 1]), path_part_text(tensor.path[last]), {}};
  state.tensor = std::move(tensor);
  return state;
}

const Extents& whole_shape(const TorchFileTensor& tensor) {
  return tensor.sharding ? tensor.sharding->global_shape : tensor.sizes;
}

using Counts = std::map<Extents, std::size_t>;

// The weights that can have states.
Counts weights_of(const Checkpoint& checkpoint) {
  Counts counts;
  for (TensorId tensor : checkpoint.tensors()) {
    const Dtype dtype = checkpoint.dtype(tensor);
    const bool is_float = name(dtype).starts_with("float") || dtype == Dtype::kBfloat16;
    if (is_float && !checkpoint.shape(tensor).empty()) ++counts[copy_of(checkpoint.shape(tensor))];
  }
  return counts;
}

bool are_counts_covered_by(const Counts& states, const Counts& weights) {
  return std::all_of(states.begin(), states.end(), [&](const auto& state) {
    auto found = weights.find(state.first);
    return found != weights.end() && found->second >= state.second;
  });
}

// Number of parts if `part` is `whole` split in one dimension; 0 otherwise.
std::int64_t parts_between(const Extents& part, const Extents& whole) {
  if (part.size() != whole.size()) return 0;
  std::int64_t parts = 1;
  for (std::size_t d = 0; d < part.size(); ++d) {
    if (part[d] == whole[d]) continue;
    if (parts != 1 || part[d] < 1 || whole[d] % part[d] != 0) return 0;
    parts = whole[d] / part[d];
  }
  return parts;
}

// Matches every state to a distinct weight, whole or split into `parts`: a maximum flow between the
// few distinct shapes.
class StateFlow {
 public:
  StateFlow(const Counts& states, const Counts& weights, std::int64_t parts)
      : states_(states.begin(), states.end()), weights_(weights.begin(), weights.end()) {
    for (const auto& [state, count] : states_) {
      left_.push_back(count);
      edges_.emplace_back();
      for (std::size_t w = 0; w < weights_.size(); ++w) {
        const std::int64_t cut = parts_between(state, weights_[w].first);
        if (cut == 1 || cut == parts) edges_.back().push_back(w);
      }
    }
    for (const auto& [shape, count] : weights_) free_.push_back(count);
    given_.assign(states_.size(), std::vector<std::size_t>(weights_.size(), 0));
  }

  // Matches each state to a weight; false if that is impossible. Prefers whole weights, so that as
  // few as possible are split.
  bool match_all_states() {
    for (std::size_t s = 0; s < states_.size(); ++s) {
      for (std::size_t w : edges_[s]) {
        if (states_[s].first == weights_[w].first) move(s, w, std::min(left_[s], free_[w]));
      }
    }
    for (std::size_t s = 0; s < states_.size(); ++s) {
      while (left_[s] != 0) {
        seen_.assign(weights_.size(), false);
        if (!augment_flow_by_state(s)) return false;
        --left_[s];
      }
    }
    return true;
  }

  // The states that were matched to weights of another shape.
  CutStates cut(std::int64_t parts, std::map<Extents, std::size_t>& cut_shapes) const {
    CutStates out;
    out.parts = parts;
    for (std::size_t s = 0; s < states_.size(); ++s) {
      for (std::size_t w = 0; w < weights_.size(); ++w) {
        if (given_[s][w] == 0 || states_[s].first == weights_[w].first) continue;
        out.cut += given_[s][w];
        cut_shapes[states_[s].first] += given_[s][w];
        if (out.whole.empty() || weights_[w].first.size() > out.whole.size())
          out.whole = weights_[w].first;
      }
    }
    return out;
  }

  const Extents* state_cut_from(const Extents& whole) const {
    for (std::size_t s = 0; s < states_.size(); ++s) {
      for (std::size_t w = 0; w < weights_.size(); ++w) {
        if (given_[s][w] != 0 && weights_[w].first == whole && states_[s].first != whole)
          return &states_[s].first;
      }
    }
    return nullptr;
  }

 private:
  void move(std::size_t s, std::size_t w, std::size_t count) {
    given_[s][w] += count;
    free_[w] -= count;
    left_[s] -= count;
  }
  // Augments the flow by one state of shape `s`, rerouting others if needed.
  bool augment_flow_by_state(std::size_t s) {
    for (std::size_t w : edges_[s]) {
      if (seen_[w]) continue;
      seen_[w] = true;
      if (free_[w] != 0) {
        --free_[w];
        ++given_[s][w];
        return true;
      }
      for (std::size_t other = 0; other < states_.size(); ++other) {
        if (other == s || given_[other][w] == 0 || !augment_flow_by_state(other)) continue;
        --given_[other][w];
        ++given_[s][w];
        return true;
      }
    }
    return false;
  }

  std::vector<std::pair<Extents, std::size_t>> states_, weights_;
  std::vector<std::vector<std::size_t>> edges_, given_;
  std::vector<std::size_t> left_, free_;
  std::vector<bool> seen_;
};

// Possible numbers of ranks, ascending.
std::set<std::int64_t> possible_rank_counts(const Counts& states, const Counts& weights) {
  std::set<std::int64_t> parts;
  for (const auto& [state, count] : states) {
    if (weights.contains(state)) continue;
    for (const auto& [whole, wholes] : weights) {
      const std::int64_t cut = parts_between(state, whole);
      if (cut > 1 && cut <= kMaxStateParts) parts.insert(cut);
    }
  }
  return parts;
}

// True if the rows are as long as the n-th part of each weight, rounded up.
bool is_part_of_each(const Checkpoint& checkpoint, const AdjacentShapes& shapes,
                     std::int64_t ranks) {
  std::vector<std::int64_t> parts, rows;
  for (const auto& [shape, count] : weights_of(checkpoint)) {
    const std::int64_t elements = volume(shape).value_or(0);
    parts.insert(parts.end(), count, ceil_divide(elements, ranks));
  }
  for (const Extents& shape : shapes.shapes) rows.push_back(shape[0]);
  std::sort(parts.begin(), parts.end());
  std::sort(rows.begin(), rows.end());
  return parts == rows;
}

}  // namespace

std::vector<AdjacentOptimizer> adjacent_optimizers(const Checkpoint& checkpoint) {
  std::vector<AdjacentOptimizer> found;
  if (checkpoint.directory() == nullptr) return found;
  for (const FileRow& file : checkpoint.files()) {
    if (file.referenced || !file.safe || file.kind != EntryKind::kFile || !is_at_top(file.path) ||
        trainer_file(file.path) != TrainerFile::kOptimizer || found.size() == kMaxOptimizers)
      continue;
    auto source = checkpoint.directory()->open(file.path);
    auto read = source ? read_torch_file_tensors(*source)
                       : Result<SideFile>(tl::unexpected(source.error()));
    if (!read) continue;
    AdjacentOptimizer optimizer{file.path, {}};
    for (TorchFileTensor& tensor : read->tensors) {
      if (auto state = parse_adjacent_state(std::move(tensor)))
        optimizer.states.push_back(std::move(*state));
    }
    if (!optimizer.states.empty()) found.push_back(std::move(optimizer));
  }
  return found;
}

std::optional<AdjacentShapes> shapes_of(const AdjacentOptimizer& optimizer) {
  std::map<std::string_view, const Extents*> by_parameter;
  AdjacentShapes out;
  for (const AdjacentState& state : optimizer.states) {
    const Extents& shape = whole_shape(state.tensor);
    auto [found, is_new] = by_parameter.emplace(state.parameter, &shape);
    if (!is_new && *found->second != shape) return std::nullopt;
    if (!is_new) continue;
    out.parameters.push_back(state.parameter);
    out.shapes.push_back(shape);
  }
  return out;
}

std::optional<CutStates> infer_sharded_states(const Checkpoint& checkpoint,
                                              const AdjacentShapes& shapes) {
  const Counts weights = weights_of(checkpoint);
  Counts states;
  std::size_t all = 0;
  for (const Extents& shape : shapes.shapes) ++states[shape];
  for (const auto& [shape, count] : weights) all += count;
  // An optimizer for few weights (adapters, a new head) may have shapes that look split.
  if (states.size() > kMaxShapes || weights.size() > kMaxShapes || shapes.shapes.size() > all ||
      10 * shapes.shapes.size() < 9 * all || are_counts_covered_by(states, weights))
    return std::nullopt;
  for (std::int64_t parts : possible_rank_counts(states, weights)) {
    StateFlow flow(states, weights, parts);
    if (!flow.match_all_states()) continue;
    std::map<Extents, std::size_t> cut_shapes;
    CutStates out = flow.cut(parts, cut_shapes);
    const Extents* example = flow.state_cut_from(out.whole);
    if (example == nullptr) continue;
    const auto at = std::find(shapes.shapes.begin(), shapes.shapes.end(), *example);
    out.example = static_cast<std::size_t>(at - shapes.shapes.begin());
    return out;
  }
  return std::nullopt;
}

std::optional<FlatStates> infer_flat_states(const Checkpoint& checkpoint,
                                            const AdjacentShapes& shapes) {
  // Rows are padded to a multiple of the ranks (FSDP) or a few times that (DeepSpeed).
  constexpr std::int64_t kMaxPadding = 4;
  FlatStates out;
  std::int64_t longest = 0, longest_vector = 0;
  std::size_t count_of_weights = 0;
  for (const Extents& shape : shapes.shapes) {
    const auto sum = shape.size() == 1 ? checked_add(out.elements, shape[0]) : std::nullopt;
    if (!sum) return std::nullopt;
    out.elements = *sum;
    longest = std::max(longest, shape[0]);
  }
  for (const auto& [shape, count] : weights_of(checkpoint)) {
    const auto each = checked_mul(volume(shape).value_or(0), static_cast<std::int64_t>(count));
    const auto sum = each ? checked_add(out.weights, *each) : std::nullopt;
    if (!sum) return std::nullopt;
    out.weights = *sum;
    count_of_weights += count;
    if (shape.size() == 1) longest_vector = std::max(longest_vector, shape[0]);
  }
  out.rows = shapes.shapes.size();
  // Excludes vectors of a model with frozen matrices.
  if (out.elements < 1 || longest <= longest_vector || out.rows > count_of_weights)
    return std::nullopt;
  out.ranks = out.weights / out.elements + (out.weights % out.elements != 0 ? 1 : 0);
  if (out.ranks < 2 || out.ranks > kMaxStateParts) return std::nullopt;
  // A row contains several weights, or its rank's part of one.
  if (2 * out.rows > count_of_weights && !is_part_of_each(checkpoint, shapes, out.ranks))
    return std::nullopt;
  const std::int64_t padding = out.ranks * out.elements - out.weights;
  const auto most = checked_mul(static_cast<std::int64_t>(out.rows), kMaxPadding * out.ranks);
  return most && padding <= *most && padding < out.elements ? std::optional(out) : std::nullopt;
}

}  // namespace shw
