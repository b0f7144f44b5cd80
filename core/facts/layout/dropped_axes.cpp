#include <algorithm>
#include <map>
#include <set>

#include "core/facts/layout/dropped_axes.h"
#include "core/facts/layout/off_the_grid.h"
#include "core/facts/layout/rank_order_certainty.h"
#include "core/facts/layout/spec_layout.h"
#include "core/facts/states/local_states.h"
#include "core/facts/states/split_pairs.h"
#include "core/mesh/torch_offset_bugs.h"

namespace shw {
namespace {

using AxisSet = std::vector<std::size_t>;  // axes of a mesh, ascending

// A tensor that is too short, with the writers of its chunks as ranks of the spec's mesh.
struct UndersizedTensor {
  TensorId tensor{};
  const SpecEntry* entry = nullptr;
  std::size_t dim = 0;              // the first dim that is too short
  bool only_one_dim_short = true;   // no other dim is too short
  std::vector<std::size_t> order;   // axes in split order
  std::vector<ChunkId> chunks;      // non-empty chunks
  std::vector<std::int64_t> ranks;  // ranks of their writers; empty if one is unknown
  std::vector<ChunkId> empty;       // empty chunks with known writers
  std::vector<std::int64_t> empty_ranks;
  bool chunks_in_bounds =
      true;  // false if writers of uneven parts recorded more rows than the first
};

// Dims that are shorter than in the spec; empty if any other dim differs.
std::vector<std::size_t> short_dims(ExtentsView saved, ExtentsView expected) {
  if (saved.size() != expected.size()) return {};
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < saved.size(); ++d) {
    if (saved[d] == expected[d]) continue;
    if (saved[d] <= 0 || saved[d] > expected[d]) return {};
    dims.push_back(d);
  }
  return dims;
}

std::optional<UndersizedTensor> find_undersized_tensor(const CheckInput& input, TensorId tensor) {
  const Checkpoint& c = input.checkpoint;
  const SpecEntry* entry = layout_of(input, c.fqn(tensor));
  if (entry == nullptr) return std::nullopt;
  std::vector<std::size_t> dims = short_dims(c.shape(tensor), entry->shape);
  auto order = dims.empty() ? std::nullopt : split_axis_order(*entry);
  if (!order) return std::nullopt;
  UndersizedTensor found{tensor, entry, dims.front(), dims.size() == 1, *order, {}, {}, {}, {}};
  bool known = true;
  for (ChunkId chunk : c.chunks(tensor)) {
    if (c.offsets(chunk).size() != entry->shape.size()) return std::nullopt;
    found.chunks_in_bounds =
        found.chunks_in_bounds && is_inside(c.offsets(chunk), c.sizes(chunk), c.shape(tensor));
    auto writer = c.writer(chunk);
    auto rank = writer ? rank_in_mesh(input, *entry->mesh, *writer) : std::nullopt;
    if (volume(c.sizes(chunk)) == 0) {
      if (rank) found.empty.push_back(chunk);
      if (rank) found.empty_ranks.push_back(*rank);
      continue;
    }
    found.chunks.push_back(chunk);
    known = known && rank.has_value();
    if (known) found.ranks.push_back(*rank);
  }
  if (!known) found.ranks.clear();
  if (found.ranks.empty() && !found.chunks_in_bounds) return std::nullopt;
  return found;
}

bool splits_undersized_dim(const UndersizedTensor& tensor, std::size_t axis) {
  return tensor.entry->mesh.value().axes[axis].size > 1 &&
         sharded_dim_of(tensor.entry->placements[axis], tensor.entry->shape.size()) == tensor.dim;
}

// True if no other axis splits the same dimension earlier: the axis' part is one interval.
bool splits_dim_first(const UndersizedTensor& tensor, std::size_t axis) {
  for (std::size_t other : tensor.order) {
    if (splits_undersized_dim(tensor, other)) return other == axis;
  }
  return false;
}

// The part of the short dimension at one coordinate of the axis.
Cut short_dim_part_at_coordinate(const UndersizedTensor& tensor, std::size_t axis,
                                 std::int64_t coordinate) {
  return chunk_of(tensor.entry->shape[tensor.dim], tensor.entry->mesh->axes[axis].size, coordinate);
}

struct LayoutInterpretation {
  bool splits_own_part = false;  // each writer split the part of its own coordinate (uneven parts
                                 // differ), not the saved shape
  bool plain = false;  // plain splits: a saver that drops an axis may drop the strides too
};

// True if every chunk is the box that its writer computes, and every writer of an empty chunk has
// an empty box: a rank with data would prove that the axis was not dropped. `cut_by`: by rank, the
// assumed global shape and the box.
template <class CutBy>
bool reproduces_all_chunks(const Checkpoint& c, const UndersizedTensor& tensor, CutBy cut_by) {
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    auto [shape, box] = cut_by(tensor.ranks[i]);
    if (!box || *box != box_of(c, tensor.chunks[i])) return false;
  }
  for (std::size_t i = 0; i < tensor.empty.size(); ++i) {
    auto [shape, box] = cut_by(tensor.empty_ranks[i]);
    // An offset beyond the assumed shape is impossible.
    bool behind = c.offsets(tensor.empty[i])[tensor.dim] > shape[tensor.dim];
    if (behind || !box || volume(box->sizes) != 0) return false;
  }
  return true;
}

// True if the recorded size equals the part of one coordinate on the axis.
bool is_part_at_some_coordinate(const Checkpoint& c, const UndersizedTensor& tensor,
                                std::size_t axis) {
  std::int64_t saved = c.shape(tensor.tensor)[tensor.dim];
  for (std::int64_t at = 0; at < tensor.entry->mesh->axes[axis].size; ++at) {
    if (short_dim_part_at_coordinate(tensor, axis, at).size == saved) return true;
  }
  return false;
}

// True if removing `axis` from the layout reproduces every chunk box.
bool explains(const Checkpoint& c, const UndersizedTensor& tensor, std::size_t axis,
              LayoutInterpretation reading) {
  if (reading.splits_own_part && !is_part_at_some_coordinate(c, tensor, axis)) return false;
  const Mesh& mesh = *tensor.entry->mesh;
  MeshLayout reduced = without_axis(mesh, tensor.entry->placements, axis);
  if (reading.plain) reduced.placements = as_plain_placements(reduced.placements);
  return reproduces_all_chunks(c, tensor, [&](std::int64_t rank) {
    std::vector<std::int64_t> coordinates = mesh.coordinates(rank);
    Extents shape = copy_of(c.shape(tensor.tensor));
    if (reading.splits_own_part)
      shape[tensor.dim] = short_dim_part_at_coordinate(tensor, axis, coordinates[axis]).size;
    coordinates.erase(coordinates.begin() + static_cast<std::ptrdiff_t>(axis));
    auto box = box_of_nested_splits(shape, reduced.mesh, reduced.placements,
                                    reduced.mesh.rank(coordinates));
    return std::pair(std::move(shape), std::move(box));
  });
}

// Coordinates of a rank on all splitting axes except `axis`.
std::vector<std::int64_t> coordinates_without_axis(const UndersizedTensor& tensor, std::size_t axis,
                                                   std::int64_t rank) {
  std::vector<std::int64_t> coordinates = tensor.entry->mesh->coordinates(rank);
  for (std::size_t other = 0; other < coordinates.size(); ++other) {
    bool cuts =
        sharded_dim_of(tensor.entry->placements[other], tensor.entry->shape.size()).has_value();
    if (other == axis || !cuts) coordinates[other] = 0;
  }
  return coordinates;
}

// True if all chunks come from ranks that the other splitting axes distinguish: ranks that differ
// only in the axis claimed one box, and one of them is left. Otherwise any tensor of half the
// expected size would match.
bool has_one_writer_per_box(const UndersizedTensor& tensor, std::size_t axis) {
  std::set<std::vector<std::int64_t>> boxes;
  for (std::int64_t rank : tensor.ranks) {
    if (!boxes.insert(coordinates_without_axis(tensor, axis, rank)).second) return false;
  }
  return std::none_of(tensor.empty_ranks.begin(), tensor.empty_ranks.end(), [&](std::int64_t rank) {
    return boxes.contains(coordinates_without_axis(tensor, axis, rank));
  });
}

// True for a grid that is not torch.chunk's but fills the part of one coordinate, as
// Megatron-FSDP's flat buckets do: shifted by the axis that splits first.
bool fills_part_of_first_axis(const Checkpoint& c, const UndersizedTensor& tensor,
                              std::size_t axis) {
  if (!tensor.chunks_in_bounds || !splits_dim_first(tensor, axis) ||
      !has_one_writer_per_box(tensor, axis))
    return false;
  const Mesh& mesh = *tensor.entry->mesh;
  return std::all_of(tensor.ranks.begin(), tensor.ranks.end(), [&](std::int64_t rank) {
    return short_dim_part_at_coordinate(tensor, axis, mesh.coordinates(rank)[axis]).size ==
           c.shape(tensor.tensor)[tensor.dim];
  });
}

// Shape of a chunk's item: from its header if read, else from the metadata.
Extents payload_sizes(const CheckInput& input, ChunkId chunk) {
  const std::size_t at = index_of(chunk);
  if (at < input.headers.size() && input.headers.has_value(at)) return input.headers[at]->sizes;
  return copy_of(input.checkpoint.sizes(chunk));
}

bool have_disjoint_boxes(const std::vector<RetainedChunk>& retained_chunks) {
  std::vector<Extents> starts;
  for (const RetainedChunk& retained_chunk : retained_chunks) starts.push_back(retained_chunk.at);
  std::sort(starts.begin(), starts.end());
  return std::adjacent_find(starts.begin(), starts.end()) == starts.end();
}

void place_chunks_by_nested_splits(const CheckInput& input, const UndersizedTensor& tensor,
                                   DroppedAxis& out) {
  const SpecEntry& entry = *tensor.entry;
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    Extents sizes = payload_sizes(input, tensor.chunks[i]);
    // The correct box of the rank; torch's newest offsets are the second choice.
    auto box = box_of_nested_splits(entry.shape, *entry.mesh, entry.placements, tensor.ranks[i]);
    if (!box || box->sizes != sizes)
      box = local_box(entry.shape, *entry.mesh, entry.placements, tensor.ranks[i]);
    if (!box || box->sizes != sizes) {
      out.why_not = index_of(tensor.chunks[i]) < input.headers.size()
                        ? "an item holds " + to_text(sizes) + " where its rank should hold " +
                              (box ? to_text(box->sizes) : "something else")
                        : "the headers of the items must be read to place them (--depth headers)";
      return;
    }
    out.retained_chunks.push_back(whole_retained_chunk(tensor.chunks[i], sizes, box->offsets));
  }
  out.placed = have_disjoint_boxes(out.retained_chunks);
  if (!out.placed) out.why_not = "two chunks were written by ranks with the same mesh position";
}

// Buckets are split unevenly but in rank order: chunks must begin in the order of the spec's boxes,
// along the short dimension and along those of other axes.
bool is_stored_in_order(const Checkpoint& c, const UndersizedTensor& tensor, std::size_t axis,
                        std::size_t dim) {
  const SpecEntry& entry = *tensor.entry;
  std::vector<std::pair<std::int64_t, std::int64_t>> begins;  // in the chunk and in the spec
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    std::vector<std::int64_t> coordinates = entry.mesh->coordinates(tensor.ranks[i]);
    coordinates[axis] = 0;
    auto box = box_of_nested_splits(entry.shape, *entry.mesh, entry.placements,
                                    entry.mesh->rank(coordinates));
    if (!box) return false;
    begins.emplace_back(c.offsets(tensor.chunks[i])[dim], box->offsets[dim]);
  }
  std::sort(begins.begin(), begins.end());
  return std::is_sorted(begins.begin(), begins.end(),
                        [](const auto& a, const auto& b) { return a.second < b.second; });
}

constexpr const char* kOutOfOrder = "its chunks are not in the order that the spec's ranks imply";

bool is_stored_in_order(const Checkpoint& c, const UndersizedTensor& tensor, std::size_t axis) {
  for (std::size_t dim = 0; dim < tensor.entry->shape.size(); ++dim) {
    if (!is_stored_in_order(c, tensor, axis, dim)) return false;
  }
  return true;
}

void place_chunks_by_axis_shift(const CheckInput& input, const UndersizedTensor& tensor,
                                DroppedAxis& out) {
  const Mesh& mesh = *tensor.entry->mesh;
  if (!is_stored_in_order(input.checkpoint, tensor, out.axis)) {
    out.why_not = kOutOfOrder;
    return;
  }
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    Box box = box_of(input.checkpoint, tensor.chunks[i]);
    if (payload_sizes(input, tensor.chunks[i]) != box.sizes) {
      out.why_not = "an item's shape does not match its chunk";
      return;
    }
    std::int64_t coordinate = mesh.coordinates(tensor.ranks[i])[out.axis];
    box.offsets[tensor.dim] += short_dim_part_at_coordinate(tensor, out.axis, coordinate).offset;
    out.retained_chunks.push_back(whole_retained_chunk(tensor.chunks[i], box.sizes, box.offsets));
  }
  out.placed = true;
}

DroppedAxis dropped(const CheckInput& input, const UndersizedTensor& tensor, std::size_t axis,
                    bool grid, OffGridChunks& off_the_grid) {
  DroppedAxis out;
  out.tensor = tensor.tensor;
  out.entry = tensor.entry;
  out.axis = axis;
  out.dim = tensor.dim;
  out.matches_grid_by_rank = grid;
  std::int64_t saved = input.checkpoint.shape(tensor.tensor)[tensor.dim];
  out.factor = tensor.entry->shape[tensor.dim] / saved +
               (tensor.entry->shape[tensor.dim] % saved != 0 ? 1 : 0);
  for (std::int64_t rank : tensor.ranks)
    out.coordinates.push_back(tensor.entry->mesh->coordinates(rank)[axis]);
  if (tensor.ranks.empty()) {
    out.why_not = unknown_rank_reason(input, *tensor.entry->mesh);
  } else if (off_the_grid(*tensor.entry, axis)) {
    out.why_not =
        "tensors of this mesh and these placements that were saved whole are not cut "
        "along " +
        tensor.entry->mesh->axes[axis].name +
        " as the spec says, so the ranks that wrote them do not show where kept chunks belong";
  } else if (grid) {
    place_chunks_by_nested_splits(input, tensor, out);
  } else {
    place_chunks_by_axis_shift(input, tensor, out);
  }
  return out;
}

// Tries several axes at once, because FSDP2's own mesh has neither expert nor expert-tensor ranks.
// A single chunk says little about its grid: then the spec must mark the tensor as an expert's.
bool explains_without_axes(const Checkpoint& c, const UndersizedTensor& tensor,
                           const AxisSet& axes) {
  const Mesh& mesh = *tensor.entry->mesh;
  return reproduces_all_chunks(c, tensor, [&](std::int64_t rank) {
    MeshLayout reduced{mesh, tensor.entry->placements};
    std::vector<std::int64_t> coordinates = mesh.coordinates(rank);
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      reduced = without_axis(reduced.mesh, reduced.placements, *axis);
      coordinates.erase(coordinates.begin() + static_cast<std::ptrdiff_t>(*axis));
    }
    auto box = box_of_nested_splits(c.shape(tensor.tensor), reduced.mesh, reduced.placements,
                                    reduced.mesh.rank(coordinates));
    return std::pair(copy_of(c.shape(tensor.tensor)), std::move(box));
  });
}

// The smallest sets of axes whose removal gives every chunk to its writer.
std::vector<AxisSet> find_explaining_axis_sets(const Checkpoint& c,
                                               const UndersizedTensor& tensor) {
  constexpr std::size_t kMostAxes = 6;
  AxisSet cutting;
  for (std::size_t axis = 0; axis < tensor.entry->mesh->axes.size(); ++axis) {
    if (tensor.entry->mesh->axes[axis].size > 1 &&
        sharded_dim_of(tensor.entry->placements[axis], tensor.entry->shape.size()))
      cutting.push_back(axis);
  }
  bool says_little = tensor.chunks.size() < 2 && !is_expert(*tensor.entry);
  std::vector<AxisSet> found;
  if (tensor.ranks.empty() || says_little || cutting.size() > kMostAxes) return found;
  for (unsigned mask = 0; mask < 1U << cutting.size(); ++mask) {
    AxisSet set;
    for (std::size_t i = 0; i < cutting.size(); ++i) {
      if ((mask >> i & 1U) != 0) set.push_back(cutting[i]);
    }
    if (set.size() < 2 || (!found.empty() && set.size() > found.front().size())) continue;
    if (!explains_without_axes(c, tensor, set)) continue;
    if (!found.empty() && set.size() < found.front().size()) found.clear();
    found.push_back(std::move(set));
  }
  return found;
}

struct DroppedAxisCandidate {
  UndersizedTensor tensor;
  std::vector<std::size_t> axes;  // each of them explains the chunks alone
  bool grid = true;
  std::vector<AxisSet> sets;  // if no single axis does: sets of axes
};

std::optional<DroppedAxisCandidate> find_explaining_axes(const CheckInput& input,
                                                         const UndersizedTensor& tensor) {
  const Checkpoint& c = input.checkpoint;
  const Mesh& mesh = *tensor.entry->mesh;
  DroppedAxisCandidate out{tensor, {}, true, {}};
  std::int64_t saved = c.shape(tensor.tensor)[tensor.dim];
  std::int64_t expected = tensor.entry->shape[tensor.dim];
  if (!tensor.only_one_dim_short) {
    // No single axis shortens two dimensions.
  } else if (tensor.ranks.empty()) {
    // Without writers: the factor must be the size of an axis that splits this dimension.
    for (std::size_t axis : tensor.order) {
      if (splits_undersized_dim(tensor, axis) && expected % saved == 0 &&
          expected / saved == mesh.axes[axis].size)
        out.axes.push_back(axis);
    }
  } else {
    for (std::size_t axis : tensor.order) {
      if (splits_undersized_dim(tensor, axis) &&
          (explains(c, tensor, axis, {}) ||
           (splits_dim_first(tensor, axis) &&
            explains(c, tensor, axis, {.splits_own_part = true})) ||
           explains(c, tensor, axis, {.plain = true})))
        out.axes.push_back(axis);
    }
    if (out.axes.empty()) {
      out.grid = false;
      for (std::size_t axis : tensor.order) {
        if (splits_undersized_dim(tensor, axis) && fills_part_of_first_axis(c, tensor, axis))
          out.axes.push_back(axis);
      }
    }
  }
  if (out.axes.empty()) {
    out.grid = true;
    out.sets = find_explaining_axis_sets(c, tensor);
  }
  if (out.axes.empty() && out.sets.empty()) return std::nullopt;
  return out;
}

// If two axes explain a tensor, chooses the one that explains most tensors of the mesh, then the
// one whose size is the factor.
std::size_t choose_axis(const Checkpoint& c, const DroppedAxisCandidate& item,
                        const std::map<std::string, std::map<std::size_t, int>>& votes) {
  const auto& mine = votes.at(to_text(*item.tensor.entry->mesh));
  std::int64_t factor =
      item.tensor.entry->shape[item.tensor.dim] / c.shape(item.tensor.tensor)[item.tensor.dim];
  auto score = [&](std::size_t axis) {
    bool fits = item.tensor.entry->mesh->axes[axis].size == factor;
    return 2 * mine.at(axis) + (fits ? 1 : 0);
  };
  // On ties chooses the last axis, because expert and tensor axes are innermost.
  std::size_t best = item.axes.front();
  for (std::size_t axis : item.axes) {
    if (score(axis) > score(best) || (score(axis) == score(best) && axis > best)) best = axis;
  }
  return best;
}

// The set that explains most tensors, the last one on ties.
const AxisSet& choose_axis_set(const DroppedAxisCandidate& item,
                               const std::map<std::string, std::map<AxisSet, int>>& votes) {
  const auto& mine = votes.at(to_text(*item.tensor.entry->mesh));
  return *std::max_element(item.sets.begin(), item.sets.end(),
                           [&](const AxisSet& a, const AxisSet& b) {
                             return std::pair(mine.at(a), a) < std::pair(mine.at(b), b);
                           });
}

// Positions of writers belong to the mesh, not to a tensor: if other tensors of the mesh do not
// match, a match may be chance.
void reject_unmatched_families(std::vector<DroppedAxis>& found) {
  constexpr std::size_t kFew = 4;  // one mismatch among fewer tensors may have another cause
  struct Seen {
    std::size_t all = 0, out_of_order = 0;
  };
  std::map<std::string, Seen> of_mesh, of_layout;
  auto layout = [](const DroppedAxis& one) {
    std::string text = to_text(*one.entry->mesh);
    for (const Placement& placement : one.entry->placements) text += " " + to_text(placement);
    return text;
  };
  for (const DroppedAxis& one : found) {
    const std::size_t is_out = one.why_not == kOutOfOrder ? 1 : 0;
    for (Seen* seen : {&of_mesh[to_text(*one.entry->mesh)], &of_layout[layout(one)]}) {
      ++seen->all;
      seen->out_of_order += is_out;
    }
  }
  for (DroppedAxis& one : found) {
    const Seen& mesh = of_mesh[to_text(*one.entry->mesh)];
    if (!one.placed ||
        (of_layout[layout(one)].out_of_order == 0 && mesh.out_of_order * kFew < mesh.all))
      continue;
    one.placed = false;
    one.retained_chunks.clear();
    one.why_not =
        "other tensors on this mesh are not in the order that the spec's ranks imply, so the "
        "positions of these chunks are not known";
  }
}

}  // namespace

std::vector<DroppedAxis> dropped_axes(const CheckInput& input) {
  const Checkpoint& c = input.checkpoint;
  std::vector<DroppedAxisCandidate> suspects;
  if (input.spec == nullptr) return {};
  for (TensorId id : each_tensor(input)) {
    auto tensor = find_undersized_tensor(input, id);
    auto item =
        tensor && !tensor->chunks.empty() ? find_explaining_axes(input, *tensor) : std::nullopt;
    if (item) suspects.push_back(std::move(*item));
  }
  if (suspects.empty()) return {};
  // Other rules report states that are one rank's shard.
  std::set<TensorId> explained = states_split_locally(input);
  explained.merge(states_saved_as_global(input));
  std::erase_if(suspects, [&](const DroppedAxisCandidate& item) {
    return explained.contains(item.tensor.tensor);
  });
  std::map<std::string, std::map<std::size_t, int>> votes;
  std::map<std::string, std::map<AxisSet, int>> votes_of_sets;
  for (const DroppedAxisCandidate& item : suspects) {
    std::string mesh = to_text(*item.tensor.entry->mesh);
    for (std::size_t axis : item.axes) ++votes[mesh][axis];
    for (const AxisSet& set : item.sets) ++votes_of_sets[mesh][set];
  }
  OffGridChunks off_the_grid(input);
  std::vector<DroppedAxis> out;
  for (const DroppedAxisCandidate& item : each_of(suspects, input)) {
    AxisSet axes = item.axes.empty() ? choose_axis_set(item, votes_of_sets)
                                     : AxisSet{choose_axis(c, item, votes)};
    out.push_back(dropped(input, item.tensor, axes.front(), item.grid, off_the_grid));
    out.back().others.assign(axes.begin() + 1, axes.end());
  }
  reject_unmatched_families(out);
  return out;
}

}  // namespace shw
