#include "core/facts/local_states.h"

#include <algorithm>
#include <map>

#include "core/facts/off_the_grid.h"
#include "core/facts/spec_layout.h"
#include "core/facts/split_pairs.h"
#include "core/mesh/error_models.h"
#include "core/mesh/infer.h"

namespace shw {
namespace {

// One chunk from the origin that is the whole tensor: what a plain tensor leaves.
std::optional<ChunkId> only_chunk(const Checkpoint& c, TensorId state) {
  auto chunks = c.chunks(state);
  if (chunks.size() != 1) return std::nullopt;
  ExtentsView offsets = c.offsets(chunks[0]);
  bool at_origin = std::all_of(offsets.begin(), offsets.end(), [](auto o) { return o == 0; });
  if (!at_origin || !same(c.sizes(chunks[0]), c.shape(state))) return std::nullopt;
  return chunks[0];
}

bool has_elements(ExtentsView sizes) {
  return volume(sizes).value_or(1) != 0;
}

// An empty shard keeps all extents but the one that was cut.
bool is_empty_shard(ExtentsView sizes, ExtentsView shape) {
  if (sizes.size() != shape.size() || has_elements(sizes)) return false;
  std::size_t differing = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (sizes[d] != shape[d]) ++differing;
  }
  return differing == 1;
}

Box empty_box(ExtentsView shape) {
  return Box{copy_of(shape), Extents(shape.size(), 0)};
}

// The chunk of `parameter` that `writer` owns: what it wrote itself, or what the spec's mesh gives
// it where deduplication let a replica write.
void find_home(const CheckInput& input, TensorId parameter, LocalState& local) {
  const Checkpoint& c = input.checkpoint;
  ExtentsView sizes = c.sizes(local.chunk);
  bool wrote_any = false;
  for (ChunkId chunk : c.chunks(parameter)) {
    if (c.writer(chunk) != local.writer || !has_elements(c.sizes(chunk))) continue;
    if (!lies_inside(c.offsets(chunk), c.sizes(chunk), local.expected)) continue;
    wrote_any = true;
    if (!same(c.sizes(chunk), sizes)) continue;
    local.home = saved_box(c, chunk);
    local.source = "the chunk of the parameter that the same rank wrote";
    return;
  }
  if (wrote_any) return;
  if (is_empty_shard(sizes, local.expected)) {
    local.home = empty_box(local.expected);
    local.source = "the rank owns no row of the parameter";
    return;
  }
  // A replica wrote for it: the mesh tells which.
  auto take = [&](const Mesh& mesh, const std::vector<Placement>& placements, std::int64_t rank,
                  std::string_view source) {
    auto box = nested_box(local.expected, mesh, placements, rank);
    if (!box || !same(box->sizes, sizes)) return;
    for (ChunkId chunk : c.chunks(parameter)) {
      if (saved_box(c, chunk) != *box) continue;
      local.home = *box;
      local.source = source;
      return;
    }
  };
  const SpecEntry* entry = layout_of(input, c.fqn(parameter));
  if (entry != nullptr && same(entry->shape, local.expected)) {
    auto rank = rank_on(input, *entry->mesh, local.writer);
    if (rank)
      take(*entry->mesh, entry->placements, *rank,
           "the spec's mesh: a replica of the rank wrote that chunk of the parameter");
  } else if (input.mesh != nullptr && local.writer < input.mesh->size()) {
    auto placements = infer_placements(c, *input.mesh, parameter);
    if (placements)
      take(*input.mesh, *placements, local.writer,
           "the mesh that was given: a replica of the rank wrote that chunk of the parameter");
  }
}

// Has the state the size of any chunk of the parameter? Enough to say what happened, not where the
// survivor belongs.
bool looks_local(const Checkpoint& c, TensorId parameter, ExtentsView sizes) {
  if (is_empty_shard(sizes, c.shape(parameter))) return true;
  if (c.chunks(parameter).size() < 2) return false;
  for (ChunkId chunk : c.chunks(parameter)) {
    if (same(c.sizes(chunk), sizes)) return true;
  }
  return false;
}

std::optional<LocalState> by_parameter(const CheckInput& input, const OptimizerState& state) {
  const Checkpoint& c = input.checkpoint;
  if (same(c.shape(state.state), c.shape(*state.parameter))) return std::nullopt;
  if (c.shape(state.state).size() != c.shape(*state.parameter).size()) return std::nullopt;
  auto chunk = only_chunk(c, state.state);
  auto writer = chunk ? c.writer(*chunk) : std::nullopt;
  if (!writer) return std::nullopt;
  LocalState local{state, copy_of(c.shape(*state.parameter)), *writer, *chunk, std::nullopt, {}};
  find_home(input, *state.parameter, local);
  if (!local.home && !looks_local(c, *state.parameter, c.sizes(*chunk))) return std::nullopt;
  return local;
}

// A checkpoint of the optimizer alone: the spec says what the state should be.
std::optional<LocalState> by_spec(const CheckInput& input, const OptimizerState& state,
                                  OffTheGrid& off_the_grid) {
  const Checkpoint& c = input.checkpoint;
  const SpecEntry* entry = layout_of(input, c.fqn(state.state));
  if (entry == nullptr || same(c.shape(state.state), entry->shape)) return std::nullopt;
  if (c.shape(state.state).size() != entry->shape.size()) return std::nullopt;
  auto chunk = only_chunk(c, state.state);
  auto writer = chunk ? c.writer(*chunk) : std::nullopt;
  auto rank = writer ? rank_on(input, *entry->mesh, *writer) : std::nullopt;
  if (!rank) return std::nullopt;
  auto box = nested_box(entry->shape, *entry->mesh, entry->placements, *rank);
  if (!box || !same(box->sizes, c.sizes(*chunk))) return std::nullopt;
  for (std::size_t axis = 0; axis < entry->placements.size(); ++axis) {
    if (off_the_grid(*entry, axis)) return std::nullopt;
  }
  return LocalState{state, entry->shape, *writer, *chunk, *box, "the spec's mesh and placements"};
}

// The spec expects the state to be as small as it is.
bool is_as_expected(const CheckInput& input, TensorId state) {
  const SpecEntry* entry =
      input.spec == nullptr ? nullptr : input.spec->find(input.checkpoint.fqn(state));
  return entry != nullptr && same(input.checkpoint.shape(state), entry->shape);
}

}  // namespace

// States of one kind that are wrong but not in this way speak against it: a factored or quantised
// optimizer has states of other shapes by design.
std::vector<LocalState> local_states(const CheckInput& input) {
  const Checkpoint& c = input.checkpoint;
  std::set<TensorId> split = split_locally(input);
  std::map<std::string, std::vector<LocalState>> hits;
  std::map<std::string, std::size_t> misses;
  OffTheGrid off_the_grid(input);
  for (const OptimizerState& state : each_state(input)) {
    if (split.contains(state.state) || c.shape(state.state).empty()) continue;
    if (is_as_expected(input, state.state)) continue;
    if (state.parameter) {
      if (same(c.shape(state.state), c.shape(*state.parameter))) continue;
      if (auto local = by_parameter(input, state))
        hits[state.kind].push_back(std::move(*local));
      else
        ++misses[state.kind];
    } else if (auto local = by_spec(input, state, off_the_grid)) {
      hits[state.kind].push_back(std::move(*local));
    }
  }
  std::vector<LocalState> all;
  for (auto& [kind, locals] : hits) {
    if (locals.size() < 9 * misses[kind]) continue;
    // A counter of one element beside parameters that are cut into single elements says nothing.
    bool only_counters = std::all_of(locals.begin(), locals.end(), [&](const LocalState& local) {
      return local.state.role == StateRole::kOther &&
             volume(c.shape(local.state.state)).value_or(0) <= 1;
    });
    if (only_counters) continue;
    std::move(locals.begin(), locals.end(), std::back_inserter(all));
  }
  return all;
}

std::set<TensorId> saved_as_global(const CheckInput& input) {
  std::set<TensorId> states;
  for (const LocalState& local : local_states(input)) states.insert(local.state.state);
  return states;
}

}  // namespace shw
