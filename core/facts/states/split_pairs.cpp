#include "core/facts/states/split_pairs.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/facts/layout/spec_layout.h"

namespace shw {
namespace {

// Rows per chunk if a state is split evenly along dim 0 into consecutive chunks.
std::optional<std::int64_t> rows_per_even_chunk(const Checkpoint& c, TensorId state) {
  auto chunks = c.chunks(state);
  if (chunks.empty()) return std::nullopt;
  std::vector<std::int64_t> starts;
  if (c.sizes(chunks[0]).empty()) return std::nullopt;
  std::int64_t rows = c.sizes(chunks[0])[0];
  for (ChunkId chunk : chunks) {
    if (!is_inside(c.offsets(chunk), c.sizes(chunk), c.shape(state))) return std::nullopt;
    for (std::size_t d = 1; d < c.shape(state).size(); ++d) {
      if (c.offsets(chunk)[d] != 0 || c.sizes(chunk)[d] != c.shape(state)[d]) return std::nullopt;
    }
    if (c.sizes(chunk)[0] != rows) return std::nullopt;
    starts.push_back(c.offsets(chunk)[0]);
  }
  std::sort(starts.begin(), starts.end());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (starts[i] != static_cast<std::int64_t>(i) * rows) return std::nullopt;
  }
  if (rows * static_cast<std::int64_t>(starts.size()) != c.shape(state)[0]) return std::nullopt;
  return rows;
}

using Writer = std::optional<std::uint32_t>;

// Ranks that hold equal rows of a parameter: the rank itself, and its replicas by the spec.
class RankPositions {
 public:
  RankPositions(const CheckInput& input, TensorId parameter)
      : entry_(layout_of(input, input.checkpoint.fqn(parameter))) {
    if (entry_ != nullptr) ranks_.emplace(input, *entry_->mesh);
  }
  bool have_same_shard(Writer a, Writer b) const {
    if (a == b || !a || !b || !ranks_) return a == b;
    auto place = place_of(*ranks_, *entry_, *a);
    return place && place == place_of(*ranks_, *entry_, *b);
  }

 private:
  const SpecEntry* entry_;
  std::optional<RankMap> ranks_;
};

bool same_writers(const Checkpoint& c, const RankPositions& owners, TensorId a, TensorId b) {
  auto first = c.chunks(a), second = c.chunks(b);
  if (first.size() != second.size()) return false;
  std::map<std::int64_t, Writer> writers;
  for (ChunkId chunk : first) writers[c.offsets(chunk)[0]] = c.writer(chunk);
  for (ChunkId chunk : second) {
    auto found = writers.find(c.offsets(chunk)[0]);
    if (found == writers.end() || !owners.have_same_shard(found->second, c.writer(chunk)))
      return false;
  }
  return true;
}

// True if the retained rows are the first rows of W, owned by the rank that owns the first row
// according to the model's chunks.
bool are_first_rows(const Checkpoint& c, const RankPositions& owners, const SplitPair& pair) {
  const std::int64_t item = c.shape(pair.w.parameter)[0] / pair.chunks;
  for (ChunkId chunk : c.chunks(pair.w.state)) {
    const std::int64_t begin = c.offsets(chunk)[0] / pair.rows * item;
    bool wrote_any = false, wrote_first = false;
    for (ChunkId held : c.chunks(pair.w.parameter)) {
      if (volume(c.sizes(held)) == 0 || !owners.have_same_shard(c.writer(held), c.writer(chunk)))
        continue;
      wrote_any = true;
      wrote_first = wrote_first || c.offsets(held)[0] == begin;
    }
    if (wrote_any && !wrote_first) return false;
  }
  return true;
}

// One chunk per tensor-parallel rank; a strided split of the rows gives their number.
bool has_chunk_per_parallel_rank(const CheckInput& input, const SplitPair& pair) {
  const SpecEntry* entry = layout_of(input, input.checkpoint.fqn(pair.w.parameter));
  if (entry == nullptr) return true;
  const std::size_t ndim = entry->shape.size();
  return std::all_of(entry->placements.begin(), entry->placements.end(), [&](const Placement& p) {
    return p.kind != Placement::Kind::kStridedShard || sharded_dim_of(p, ndim) != 0 ||
           p.split_factor == pair.chunks;
  });
}

// nullopt unless both halves are too small by the same factor of at least 2 T.
std::optional<SplitPair> pair_split_by_local_length(const CheckInput& input, const SplitHalf& w,
                                                    const SplitHalf& v) {
  const Checkpoint& c = input.checkpoint;
  ExtentsView state = c.shape(w.state), model = c.shape(w.parameter);
  if (state.empty() || state.size() != model.size() || state[0] <= 0 || model[0] % state[0] != 0)
    return std::nullopt;
  if (!same(state, c.shape(v.state)) || !same(model, c.shape(v.parameter))) return std::nullopt;
  if (!same(state.subspan(1), model.subspan(1))) return std::nullopt;
  SplitPair pair;
  pair.w = w;
  pair.v = v;
  pair.ratio = model[0] / state[0];
  auto rows = rows_per_even_chunk(c, w.state);
  if (pair.ratio < 2 || !rows || rows_per_even_chunk(c, v.state) != rows) return std::nullopt;
  pair.rows = *rows;
  pair.chunks = c.chunks(w.state).size();
  if (pair.ratio % pair.chunks != 0 || model[0] % pair.chunks != 0) return std::nullopt;
  if (2 * pair.rows > model[0] / pair.chunks) return std::nullopt;
  const RankPositions owners(input, w.parameter);
  if (!same_writers(c, owners, w.state, v.state) || !are_first_rows(c, owners, pair) ||
      !has_chunk_per_parallel_rank(input, pair))
    return std::nullopt;
  return pair;
}

bool is_half_of_pair(std::string_view name, std::string_view suffix) {
  return name.size() > suffix.size() && name.ends_with(suffix);
}

}  // namespace

std::vector<SplitPair> split_pairs(const CheckInput& input) {
  const Checkpoint& c = input.checkpoint;
  // The two halves by stem and kind. Halves are named as by Megatron's splitter; the stem may be
  // anything.
  struct Halves {
    std::optional<SplitHalf> w, v;
    OptimizerState first;
  };
  std::map<std::string, Halves> stems;
  for (const OptimizerState& state : each_state(input)) {
    if (!state.parameter || c.shape(state.state).empty()) continue;
    bool is_w = is_half_of_pair(state.key, "_w"), is_v = is_half_of_pair(state.key, "_v");
    if (!is_w && !is_v) continue;
    std::string stem = state.key.substr(0, state.key.size() - 2) + "\n" + state.kind;
    SplitHalf half{state.state, *state.parameter};
    Halves& halves = stems[stem];
    (is_w ? halves.w : halves.v) = half;
    halves.first = state;
  }
  std::vector<SplitPair> pairs;
  for (const auto& [stem, halves] : stems) {
    if (!halves.w || !halves.v) continue;
    auto pair = pair_split_by_local_length(input, *halves.w, *halves.v);
    if (!pair) continue;
    pair->role = halves.first.role;
    pair->kind = halves.first.kind;
    pairs.push_back(std::move(*pair));
  }
  return pairs;
}

std::set<TensorId> states_split_locally(const CheckInput& input) {
  std::set<TensorId> states;
  for (const SplitPair& pair : split_pairs(input)) {
    states.insert(pair.w.state);
    states.insert(pair.v.state);
  }
  return states;
}

}  // namespace shw
