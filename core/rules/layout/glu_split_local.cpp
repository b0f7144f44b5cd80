// S2, Megatron-LM #4423. A gated weight is saved as two halves, _w and _v. The saver cut the
// optimizer state of one rank as if it were the whole item: both halves then hold rows of W only,
// and only those of the first rank that owns any. Rows of chunk t (one a TP rank), q each, of M /
// T:
//
//   _w chunk t -> W rows [t M/T, + q)      _v chunk t -> W rows [t M/T + q, + q)      V is gone
#include <algorithm>
#include <map>

#include "core/facts/survivors.h"
#include "core/rules/layout/wrong_request.h"
#include "core/rules/reports.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

struct Half {
  TensorId state{};
  TensorId parameter{};
};

struct Pair {
  Half w, v;
  StateRole role = StateRole::kOther;
  std::string kind;
  std::int64_t chunks = 0;  // T
  std::int64_t rows = 0;    // q
  std::int64_t ratio = 0;   // rows of the model over rows of the state
};

// The rows of a state cut evenly along dim 0 into chunks that follow each other.
std::optional<std::int64_t> even_rows(const Checkpoint& c, TensorId state) {
  auto chunks = c.chunks(state);
  if (chunks.empty()) return std::nullopt;
  std::vector<std::int64_t> starts;
  if (c.sizes(chunks[0]).empty()) return std::nullopt;
  std::int64_t rows = c.sizes(chunks[0])[0];
  for (ChunkId chunk : chunks) {
    if (!lies_inside(c.offsets(chunk), c.sizes(chunk), c.shape(state))) return std::nullopt;
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

bool same_writers(const Checkpoint& c, TensorId a, TensorId b) {
  auto first = c.chunks(a), second = c.chunks(b);
  if (first.size() != second.size()) return false;
  std::map<std::int64_t, std::optional<std::uint32_t>> writers;
  for (ChunkId chunk : first) writers[c.offsets(chunk)[0]] = c.writer(chunk);
  for (ChunkId chunk : second) {
    auto found = writers.find(c.offsets(chunk)[0]);
    if (found == writers.end() || found->second != c.writer(chunk)) return false;
  }
  return true;
}

// Both halves shrunk alike against their own model tensors, by a factor of 2 T or more.
std::optional<Pair> broken_pair(const Checkpoint& c, const Half& w, const Half& v) {
  ExtentsView state = c.shape(w.state), model = c.shape(w.parameter);
  if (state.empty() || state.size() != model.size() || state[0] <= 0 || model[0] % state[0] != 0)
    return std::nullopt;
  if (!same(state, c.shape(v.state)) || !same(model, c.shape(v.parameter))) return std::nullopt;
  if (!same(state.subspan(1), model.subspan(1))) return std::nullopt;
  Pair pair;
  pair.w = w;
  pair.v = v;
  pair.ratio = model[0] / state[0];
  auto rows = even_rows(c, w.state);
  if (pair.ratio < 2 || !rows || even_rows(c, v.state) != rows) return std::nullopt;
  pair.rows = *rows;
  pair.chunks = c.chunks(w.state).size();
  if (pair.ratio % pair.chunks != 0 || model[0] % pair.chunks != 0) return std::nullopt;
  if (2 * pair.rows > model[0] / pair.chunks) return std::nullopt;
  if (!same_writers(c, w.state, v.state)) return std::nullopt;
  return pair;
}

bool is_half(std::string_view name, std::string_view suffix) {
  return name.size() > suffix.size() && name.ends_with(suffix);
}

std::vector<Pair> broken_pairs(const RuleInput& input) {
  const Checkpoint& c = input.checkpoint;
  // Stem and kind -> the two halves. The halves are named as Megatron's splitter names them; the
  // stem before them may be anything.
  struct Halves {
    std::optional<Half> w, v;
    OptimizerState first;
  };
  std::map<std::string, Halves> stems;
  for (OptimizerState& state : optimizer_states(c)) {
    if (!state.parameter || c.shape(state.state).empty()) continue;
    bool is_w = is_half(state.key, "_w"), is_v = is_half(state.key, "_v");
    if (!is_w && !is_v) continue;
    std::string stem = state.key.substr(0, state.key.size() - 2) + "\n" + state.kind;
    Half half{state.state, *state.parameter};
    Halves& halves = stems[stem];
    (is_w ? halves.w : halves.v) = half;
    halves.first = std::move(state);
  }
  std::vector<Pair> pairs;
  for (const auto& [stem, halves] : stems) {
    if (!halves.w || !halves.v) continue;
    auto pair = broken_pair(c, *halves.w, *halves.v);
    if (!pair) continue;
    pair->role = halves.first.role;
    pair->kind = halves.first.kind;
    pairs.push_back(std::move(*pair));
  }
  return pairs;
}

PartlyLost place_w(const Checkpoint& c, const Pair& pair) {
  PartlyLost part{pair.w.state, copy_of(c.shape(pair.w.parameter)), {}, {}};
  std::int64_t item = part.expected[0] / pair.chunks;
  auto place = [&](TensorId state, std::int64_t shift) {
    for (ChunkId chunk : c.chunks(state)) {
      Extents at(part.expected.size(), 0);
      at[0] = c.offsets(chunk)[0] / pair.rows * item + shift;
      part.survivors.push_back(whole_survivor(chunk, c.sizes(chunk), at));
    }
  };
  place(pair.w.state, 0);
  place(pair.v.state, pair.rows);
  return part;
}

Finding describe(const Checkpoint& c, const std::vector<Pair>& pairs,
                 std::vector<PartlyLost> parts) {
  Finding finding;
  finding.rule = "glu-split-local";
  finding.link = "Megatron-LM #4423";
  Loss loss = loss_of(parts);
  const Pair& first = pairs.front();
  for (const PartlyLost& part : parts) finding.subjects.emplace_back(c.fqn(part.tensor));
  finding.cause =
      "The saver split the optimizer state of gated weights into its halves by the length of one "
      "rank's shard, so both halves hold rows of the first half only, and only 1 of " +
      std::to_string(first.ratio) + " rows is there.";
  finding.evidence = {
      {"saved shape", copy_of(c.shape(first.w.state))},
      {"shape of the parameter", copy_of(c.shape(first.w.parameter))},
      {"factor", first.ratio},
      {"tensor-parallel ranks", first.chunks},
      {"rows each of them kept", first.rows},
      {"pairs", static_cast<std::int64_t>(pairs.size())},
      {"kept elements", loss.kept},
      {"lost elements", loss.lost},
  };
  if (loss.refilled != 0) finding.evidence.emplace_back("refilled from the model", loss.refilled);
  finding.remedy = Remedy{
      "retile", false,
      "Put the rows of both saved halves where they belong in the first half "
      "(_w) and mask the rest: " +
          std::to_string(loss.kept) + " elements kept, " + std::to_string(loss.lost) + " lost" +
          (loss.refilled == 0
               ? "."
               : ", " + std::to_string(loss.refilled) + " of them refilled from the model.")};
  for (PartlyLost& part : parts) finding.diagnoses.emplace_back(std::move(part));
  return finding;
}

void run(const RuleInput& input, std::vector<Finding>& findings) {
  const Checkpoint& c = input.checkpoint;
  add_wrong_requests(input, RequestKind::kHalves, "glu-split-local", "Megatron-LM #4423", findings);
  std::vector<Pair> pairs = broken_pairs(input);
  if (pairs.empty()) return;
  std::vector<PartlyLost> parts;
  std::map<TensorId, std::vector<std::size_t>> moments;  // by the parameter of the first half
  for (const Pair& pair : pairs) {
    PartlyLost w = place_w(c, pair);
    PartlyLost v{pair.v.state, copy_of(c.shape(pair.v.parameter)), {}, {}};
    if (pair.role == StateRole::kMaster) {
      w.refill_from = c.fqn(pair.w.parameter);
      v.refill_from = c.fqn(pair.v.parameter);
    }
    if (pair.role == StateRole::kMoment) moments[pair.w.parameter].push_back(parts.size());
    parts.push_back(std::move(w));
    parts.push_back(std::move(v));
  }
  for (const auto& [parameter, indices] : moments) {
    std::vector<PartlyLost*> same_parameter;
    for (std::size_t i : indices) same_parameter.push_back(&parts[i]);
    keep_common_rows(same_parameter);
  }
  findings.push_back(describe(c, pairs, std::move(parts)));
}

}  // namespace

std::set<TensorId> split_locally(const RuleInput& input) {
  std::set<TensorId> states;
  for (const Pair& pair : broken_pairs(input)) {
    states.insert(pair.w.state);
    states.insert(pair.v.state);
  }
  return states;
}

const Rule kGluSplitLocal = {
    "glu-split-local", Depth::kMetadata,
    "Optimizer state of a gated weight was split in the wrong coordinates",
    "A gated weight (SwiGLU) is saved as two halves, W and V. The saver cut the optimizer state "
    "at half of what one rank holds instead of half of the whole weight: both saved halves then "
    "hold rows of W, only those of the first rank that owns any, and V's rows are gone. The "
    "model's own weights are not touched. The repair puts the rows of both halves where they "
    "belong in W and masks the rest; only another checkpoint can bring the others back.",
    run};

}  // namespace shw
