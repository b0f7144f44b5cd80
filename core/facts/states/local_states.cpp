#include "core/facts/states/local_states.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/facts/layout/off_the_grid.h"
#include "core/facts/layout/padding.h"
#include "core/facts/layout/rank_order_certainty.h"
#include "core/facts/layout/spec_layout.h"
#include "core/facts/layout/split_orders.h"
#include "core/facts/states/split_pairs.h"
#include "core/mesh/infer.h"
#include "core/mesh/torch_offset_bugs.h"
#include "core/tiles/coverage.h"

namespace shw {
namespace {

// The chunk at the origin that covers the tensor, as a plain tensor has.
std::optional<ChunkId> only_chunk_at_origin(const Checkpoint& c, TensorId state) {
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

// An empty shard has zero extent only in the split dim.
bool is_empty_shard(ExtentsView sizes, ExtentsView shape) {
  if (sizes.size() != shape.size() || has_elements(sizes)) return false;
  std::size_t differing = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (sizes[d] != shape[d]) ++differing;
  }
  return differing == 1;
}

Box empty_box_at_end(ExtentsView shape) {
  return Box{copy_of(shape), Extents(shape.size(), 0)};
}

// The correct rows of a writer, by the parameter's chunks (whose places may be wrong,
// split_orders.h) and by the spec, which must agree.
class WriterRows {
 public:
  explicit WriterRows(const CheckInput& input) : input_(input), off_the_grid_(input) {}

  bool is_off_the_grid(const SpecEntry& entry) {
    for (std::size_t axis = 0; axis < entry.placements.size(); ++axis) {
      if (off_the_grid_(entry, axis)) return true;
    }
    return false;
  }

  // True if the parameter is split in buckets: a chunk's size matches no reading of the placements,
  // not even torch's wrong ones. Decided per tensor.
  bool is_in_buckets(TensorId parameter) const {
    const Checkpoint& c = input_.checkpoint;
    const SpecEntry* entry = layout_of(input_, c.fqn(parameter));
    if (entry == nullptr || !same(entry->shape, c.shape(parameter))) return false;
    const RankMap ranks(input_, *entry->mesh);
    for (ChunkId chunk : c.chunks(parameter)) {
      auto writer = c.writer(chunk);
      auto rank = writer ? ranks.rank_of_writer(*writer) : std::nullopt;
      if (!rank || !has_elements(c.sizes(chunk))) continue;
      bool fits = false;
      for (OffsetModel model :
           {OffsetModel::kByIndex, OffsetModel::kExplicitOrder, OffsetModel::kFirstRow}) {
        auto box =
            box_recorded_by_torch(model, entry->shape, *entry->mesh, entry->placements, *rank);
        fits = fits || (box && same(box->sizes, c.sizes(chunk)));
      }
      if (!fits) return true;
    }
    return false;
  }

  // The correct boxes of the parameter's chunks, in order. Cached for one parameter, because its
  // states are adjacent.
  const std::vector<Box>& correct_boxes_of_chunks(TensorId parameter) {
    if (last_ == parameter) return boxes_;
    last_ = parameter;
    boxes_.clear();
    if (auto found = orders().find(parameter); found != orders().end())
      return boxes_ = found->second;
    return boxes_ = chunk_boxes(input_.checkpoint, parameter);
  }

  // True if other tensors are in another split order than recorded, and the spec does not say
  // whether this one is.
  bool may_be_laid_out_differently(TensorId parameter) {
    const Checkpoint& c = input_.checkpoint;
    if (layout_of(input_, c.fqn(parameter)) != nullptr || orders().empty()) return false;
    const auto dim = single_split_dim(c, parameter);
    return dim && cuts_in_other_order_.contains({*dim, c.chunks(parameter).size()});
  }

  // True if the spec describes another layout that loads this checkpoint: tensors of its mesh
  // differ, and not by a left-to-right record of its splits (split_orders.h).
  bool describes_loading_mesh(const SpecEntry& entry) {
    if (is_expert(entry) || entry.placements != as_plain_placements(entry.placements) ||
        !orders().empty())
      return false;
    auto [known, is_new] = is_mesh_of_loader_.try_emplace(to_text(*entry.mesh), false);
    if (is_new) known->second = layout_agreement(input_, {}, &*entry.mesh).contradicts();
    return known->second;
  }

  // True if most split tensors contradict the writers' positions on the spec's mesh, so
  // the saver counted ranks otherwise. Tensors with a known other split order are
  // excluded.
  bool contradicts_writer_positions(const SpecEntry& entry) {
    auto [known, is_new] = contradicted_.try_emplace(to_text(*entry.mesh), false);
    if (!is_new) return known->second;
    std::set<TensorId> reordered;
    for (const auto& [tensor, boxes] : orders()) reordered.insert(tensor);
    known->second = layout_agreement(input_, reordered, &*entry.mesh).contradicts();
    return known->second;
  }

  // The box by the spec; nullopt if unknown or if the spec has another size.
  std::optional<Box> by_spec(const SpecEntry* entry, const LocalState& local) const {
    if (entry == nullptr || !same(entry->shape, local.expected)) return std::nullopt;
    auto rank = rank_in_mesh(input_, *entry->mesh, local.writer);
    if (!rank) return std::nullopt;
    auto box = box_of_nested_splits(entry->shape, *entry->mesh, entry->placements, *rank);
    bool fits = box && same(box->sizes, input_.checkpoint.sizes(local.chunk));
    return fits ? std::optional(std::move(*box)) : std::nullopt;
  }

 private:
  using Orders = std::map<TensorId, std::vector<Box>>;
  const Orders& orders() {
    if (orders_) return *orders_;
    orders_.emplace();
    const Checkpoint& c = input_.checkpoint;
    for (DifferentOrder& order : find_different_orders(input_)) {
      if (const auto dim = single_split_dim(c, order.tensor))
        cuts_in_other_order_.emplace(*dim, c.chunks(order.tensor).size());
      orders_->emplace(order.tensor, std::move(order.boxes));
    }
    return *orders_;
  }

  const CheckInput& input_;
  OffGridChunks off_the_grid_;
  std::optional<Orders> orders_;                                       // computed on first use
  std::set<std::pair<std::size_t, std::size_t>> cuts_in_other_order_;  // dim and number of chunks
  std::map<std::string, bool> is_mesh_of_loader_, contradicted_;       // by mesh
  std::optional<TensorId> last_;
  std::vector<Box> boxes_;  // of the cached parameter
};

constexpr const char* kOwnChunk = "the chunk of the parameter that the same rank wrote";
constexpr const char* kNoChunk =
    "the ranks that wrote these states wrote no chunk of their parameters, so give the mesh "
    "(--mesh) or a spec to place them";
constexpr const char* kOtherRanks =
    "sharded tensors are not where the spec's mesh puts their ranks, so the positions of these "
    "states are not known: give --mesh";
constexpr const char* kReplicaChunk =
    "the spec's mesh: a replica of the rank wrote that chunk of the parameter";

// The chunks of the parameter that the state's writer wrote.
struct OwnChunks {
  bool any = false;
  std::vector<Box> alike;  // correct boxes of chunks with the state's size
};

OwnChunks parameter_chunks_of_writer(const Checkpoint& c, TensorId parameter,
                                     const LocalState& local, const std::vector<Box>& boxes) {
  OwnChunks own;
  std::size_t at = 0;
  for (ChunkId chunk : c.chunks(parameter)) {
    const Box& box = boxes[at++];
    if (c.writer(chunk) != local.writer || !has_elements(c.sizes(chunk))) continue;
    if (!is_inside(c.offsets(chunk), c.sizes(chunk), c.shape(parameter))) continue;
    own.any = true;
    if (same(c.sizes(chunk), c.sizes(local.chunk))) own.alike.push_back(box);
  }
  return own;
}

// Uses the mesh if a replica of the rank wrote its chunk.
void place_by_mesh(const CheckInput& input, TensorId parameter, const std::vector<Box>& boxes,
                   LocalState& local) {
  if (input.mesh == nullptr || local.writer >= input.mesh->size()) return;
  InferredBox inferred = infer_box(input.checkpoint, *input.mesh, parameter, local.writer);
  if (inferred.is_ambiguous) {
    local.why_not =
        "it is not known which rows these ranks hold: several placements on the given mesh explain "
        "the parameters' chunks; give a spec (--spec)";
    return;
  }
  if (!inferred.box || !same(inferred.box->sizes, input.checkpoint.sizes(local.chunk))) return;
  if (std::find(boxes.begin(), boxes.end(), *inferred.box) == boxes.end()) return;
  local.home = std::move(*inferred.box);
  local.source = "the given mesh: a replica of the rank wrote that chunk of the parameter";
}

// True if the parameter is complete and longer than in the spec by a non-integer factor: the spec
// is of another model.
bool is_of_another_model(const Checkpoint& c, TensorId parameter, const SpecEntry& entry) {
  ExtentsView saved = c.shape(parameter), expected = entry.shape;
  if (saved.size() != expected.size() || has_vocabulary_rows(entry.role, c.fqn(parameter)) ||
      volume(saved) == volume(expected))
    return false;
  for (std::size_t d = 0; d < saved.size(); ++d) {
    if (expected[d] > 0 && saved[d] > expected[d] && saved[d] % expected[d] != 0)
      return compute_tiling(c, parameter).tiling == Tiling::kExact;
  }
  return false;
}

// Uses the spec, because the parameter itself is damaged.
void place_by_spec(WriterRows& places, const SpecEntry* entry, const std::optional<Box>& held,
                   LocalState& local) {
  if (held && places.contradicts_writer_positions(*entry)) {
    local.why_not = kOtherRanks;
  } else if (held && !places.is_off_the_grid(*entry)) {
    local.home = *held;
    local.source = "the spec's mesh and placements";
  } else {
    local.why_not =
        "the parameters of these states are damaged too, and no spec says which rows the ranks "
        "hold";
  }
}

// The box of a replica: of ranks with equal coordinates, one wrote the chunk for all.
std::optional<Box> box_of_replica(const CheckInput& input, TensorId parameter,
                                  const SpecEntry* entry, const std::vector<Box>& boxes,
                                  const LocalState& local) {
  const Checkpoint& c = input.checkpoint;
  if (entry == nullptr || !same(entry->shape, local.expected)) return std::nullopt;
  const RankMap ranks(input, *entry->mesh);
  const auto mine = place_of(ranks, *entry, local.writer);
  std::optional<Box> found;
  std::set<std::vector<std::int64_t>> places;  // two at one position: another mesh
  std::size_t at = 0;
  for (ChunkId chunk : c.chunks(parameter)) {
    const Box& box = boxes[at++];
    auto writer = c.writer(chunk);
    if (volume(c.sizes(chunk)) == 0) continue;
    const auto place = writer ? place_of(ranks, *entry, *writer) : std::nullopt;
    if (!mine || !place || !places.insert(*place).second) return std::nullopt;
    if (place == mine) found = box;
  }
  return found && same(found->sizes, c.sizes(local.chunk)) ? found : std::nullopt;
}

// Compares the box by the spec with the writer's chunks, which must agree.
void check_against_chunks(const Box& held, const OwnChunks& own, const std::optional<Box>& replica,
                          LocalState& local) {
  const bool own_agrees = std::find(own.alike.begin(), own.alike.end(), held) != own.alike.end();
  if (own_agrees || (!own.any && replica == held)) {
    local.home = held;
    local.source = own.any ? kOwnChunk : kReplicaChunk;
  } else if (own.any) {
    local.why_not =
        "the spec gives these ranks different rows from the parameters' chunks: find out first "
        "which of them is right";
  }
}

// The parameter's rows that the state's writer owns. `held`: by the spec.
void find_owned_rows(const CheckInput& input, WriterRows& places, TensorId parameter,
                     const SpecEntry* entry, const std::optional<Box>& held, LocalState& local) {
  const Checkpoint& c = input.checkpoint;
  const bool is_in_doubt =
      entry != nullptr && entry->mesh && is_rank_order_uncertain(input, *entry->mesh);
  local.why_not = is_in_doubt ? unknown_rank_reason(input, *entry->mesh) : kNoChunk;
  if (!same(c.shape(parameter), local.expected)) {
    if (entry == nullptr || !is_of_another_model(c, parameter, *entry))
      return place_by_spec(places, entry, held, local);
    local.why_not =
        "the parameters of these states are complete but differ in size from the spec: find out "
        "first which of them is right";
    return;
  }
  const std::vector<Box>& boxes = places.correct_boxes_of_chunks(parameter);
  OwnChunks own = parameter_chunks_of_writer(c, parameter, local, boxes);
  // In flat buckets a rank's rows do not follow from the spec; the rank's own chunks of the
  // parameter give them.
  const bool is_otherwise = held && own.alike.size() == 1 && own.alike.front() != *held;
  const bool is_asked = held && !is_empty(*held) && !places.is_in_buckets(parameter);
  if (is_asked && !(is_otherwise && places.describes_loading_mesh(*entry)))
    return check_against_chunks(
        *held, own, own.any ? std::nullopt : box_of_replica(input, parameter, entry, boxes, local),
        local);
  if (places.may_be_laid_out_differently(parameter)) {
    local.why_not =
        "other tensors of this checkpoint have a different axis order from the recorded one, and "
        "it is not known whether these states' parameters do too: give --spec";
  } else if (own.alike.size() == 1) {
    local.home = own.alike.front();
    local.source = kOwnChunk;
  } else if (own.any) {
    local.why_not =
        "the ranks that wrote these states wrote no parameter chunk of the state's size, or more "
        "than one";
  } else if (auto replica = box_of_replica(input, parameter, entry, boxes, local)) {
    local.home = std::move(*replica);
    local.source = kReplicaChunk;
  } else if ((held && is_empty(*held)) || is_empty_shard(c.sizes(local.chunk), local.expected)) {
    local.home = empty_box_at_end(local.expected);
    local.source = "the rank owns no row of the parameter";
  } else if (entry == nullptr) {
    place_by_mesh(input, parameter, boxes, local);
  }
}

// True if the state has the size of some chunk of the parameter: enough to name the cause, not to
// place the state.
bool is_local_shape(const Checkpoint& c, TensorId parameter, ExtentsView sizes) {
  if (is_empty_shard(sizes, c.shape(parameter))) return true;
  if (c.chunks(parameter).size() < 2) return false;
  for (ChunkId chunk : c.chunks(parameter)) {
    if (same(c.sizes(chunk), sizes)) return true;
  }
  return false;
}

// The spec's shape of the state or of its parameter; without a spec the parameter's saved
// shape.
ExtentsView expected_shape(const CheckInput& input, const OptimizerState& state) {
  const Checkpoint& c = input.checkpoint;
  for (TensorId tensor : {state.state, *state.parameter}) {
    const SpecEntry* entry = input.spec == nullptr ? nullptr : input.spec->find(c.fqn(tensor));
    if (entry != nullptr) return entry->shape;
  }
  return c.shape(*state.parameter);
}

std::optional<LocalState> locate_state_by_parameter(const CheckInput& input,
                                                    const OptimizerState& state,
                                                    WriterRows& places) {
  const Checkpoint& c = input.checkpoint;
  ExtentsView expected = expected_shape(input, state);
  if (same(c.shape(state.state), expected)) return std::nullopt;
  if (c.shape(state.state).size() != expected.size()) return std::nullopt;
  auto chunk = only_chunk_at_origin(c, state.state);
  auto writer = chunk ? c.writer(*chunk) : std::nullopt;
  if (!writer) return std::nullopt;
  LocalState local{state, copy_of(expected), *writer, *chunk, std::nullopt, {}, {}};
  const SpecEntry* entry = layout_of(input, c.fqn(state.state));
  if (entry == nullptr) entry = layout_of(input, c.fqn(*state.parameter));
  const auto held = places.by_spec(entry, local);
  find_owned_rows(input, places, *state.parameter, entry, held, local);
  bool is_a_shard = local.home || held || is_local_shape(c, *state.parameter, c.sizes(*chunk));
  return is_a_shard ? std::optional(std::move(local)) : std::nullopt;
}

// Handles a checkpoint with only the optimizer, where the spec gives the size of the state.
std::optional<LocalState> by_spec(const CheckInput& input, const OptimizerState& state,
                                  WriterRows& places) {
  const Checkpoint& c = input.checkpoint;
  const SpecEntry* entry = layout_of(input, c.fqn(state.state));
  if (entry == nullptr || same(c.shape(state.state), entry->shape)) return std::nullopt;
  if (c.shape(state.state).size() != entry->shape.size()) return std::nullopt;
  auto chunk = only_chunk_at_origin(c, state.state);
  auto writer = chunk ? c.writer(*chunk) : std::nullopt;
  if (!writer) return std::nullopt;
  LocalState local{state, entry->shape, *writer, *chunk, std::nullopt, {}, {}};
  local.home = places.by_spec(entry, local);
  if (!local.home || places.is_off_the_grid(*entry)) return std::nullopt;
  if (places.contradicts_writer_positions(*entry)) {
    local.home.reset();
    local.why_not = kOtherRanks;
    return local;
  }
  local.source = "the spec's mesh and placements";
  return local;
}

// True if the spec expects the state's small size.
bool has_shape_expected_by_spec(const CheckInput& input, TensorId state) {
  const SpecEntry* entry =
      input.spec == nullptr ? nullptr : input.spec->find(input.checkpoint.fqn(state));
  return entry != nullptr && same(input.checkpoint.shape(state), entry->shape);
}

}  // namespace

// Other wrong plain tensors of a kind contradict this cause: factored or quantised optimizers have
// other shapes by design. Tensors in several chunks are not plain.
std::vector<LocalState> local_states(const CheckInput& input) {
  const Checkpoint& c = input.checkpoint;
  std::set<TensorId> split = states_split_locally(input);
  std::map<std::string, std::vector<LocalState>> hits;
  std::map<std::string, std::size_t> misses;
  WriterRows places(input);
  for (const OptimizerState& state : each_state(input)) {
    if (split.contains(state.state) || c.shape(state.state).empty()) continue;
    if (has_shape_expected_by_spec(input, state.state)) continue;
    if (state.parameter) {
      if (same(c.shape(state.state), c.shape(*state.parameter))) continue;
      if (auto local = locate_state_by_parameter(input, state, places))
        hits[state.kind].push_back(std::move(*local));
      else if (only_chunk_at_origin(c, state.state))
        ++misses[state.kind];
    } else if (auto local = by_spec(input, state, places)) {
      hits[state.kind].push_back(std::move(*local));
    }
  }
  std::vector<LocalState> all;
  for (auto& [kind, locals] : hits) {
    if (locals.size() < 9 * misses[kind]) continue;
    // A single-element counter next to parameters split into single elements proves nothing.
    bool only_counters = std::all_of(locals.begin(), locals.end(), [&](const LocalState& local) {
      return local.state.role == StateRole::kOther &&
             volume(c.shape(local.state.state)).value_or(0) <= 1;
    });
    if (only_counters) continue;
    std::move(locals.begin(), locals.end(), std::back_inserter(all));
  }
  return all;
}

std::set<TensorId> states_saved_as_global(const CheckInput& input) {
  std::set<TensorId> states;
  for (const LocalState& local : local_states(input)) states.insert(local.state.state);
  return states;
}

}  // namespace shw
