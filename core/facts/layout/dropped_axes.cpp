#include <algorithm>
#include <map>
#include <set>

#include "core/facts/layout/dropped_axes.h"
#include "core/facts/layout/off_the_grid.h"
#include "core/facts/layout/rank_order_certainty.h"
#include "core/facts/layout/spec_layout.h"
#include "core/facts/states/local_states.h"
#include "core/facts/states/split_pairs.h"
#include "core/mesh/error_models.h"

namespace shw {
namespace {

using AxisSet = std::vector<std::size_t>;  // of a mesh, in its order

// One tensor that is too short, with the writers of its chunks as ranks of the spec's mesh.
struct UndersizedTensor {
  TensorId tensor{};
  const SpecEntry* entry = nullptr;
  std::size_t dim = 0;              // the first that is too short
  bool only_one_dim_short = true;   // no other one is
  std::vector<std::size_t> order;   // axes in the order in which they cut
  std::vector<ChunkId> chunks;      // those with elements
  std::vector<std::int64_t> ranks;  // of their writers; empty where one is unknown
  std::vector<ChunkId> empty;       // those without, of writers that are known
  std::vector<std::int64_t> empty_ranks;
  bool chunks_in_bounds =
      true;  // false where writers of uneven parts recorded more rows than the first did
};

// Dimensions that are shorter than the spec says, where no other is different.
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

std::optional<UndersizedTensor> short_tensor(const CheckInput& input, TensorId tensor) {
  const Checkpoint& c = input.checkpoint;
  const SpecEntry* entry = layout_of(input, c.fqn(tensor));
  if (entry == nullptr) return std::nullopt;
  std::vector<std::size_t> dims = short_dims(c.shape(tensor), entry->shape);
  auto order = dims.empty() ? std::nullopt : cut_order(*entry);
  if (!order) return std::nullopt;
  UndersizedTensor found{tensor, entry, dims.front(), dims.size() == 1, *order, {}, {}, {}, {}};
  bool known = true;
  for (ChunkId chunk : c.chunks(tensor)) {
    if (c.offsets(chunk).size() != entry->shape.size()) return std::nullopt;
    found.chunks_in_bounds =
        found.chunks_in_bounds && lies_inside(c.offsets(chunk), c.sizes(chunk), c.shape(tensor));
    auto writer = c.writer(chunk);
    auto rank = writer ? rank_on(input, *entry->mesh, *writer) : std::nullopt;
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

bool cuts_short_dim(const UndersizedTensor& tensor, std::size_t axis) {
  return tensor.entry->mesh.value().axes[axis].size > 1 &&
         cut_dim(tensor.entry->placements[axis], tensor.entry->shape.size()) == tensor.dim;
}

// Cut before any other axis that cuts the same dimension: its part is then one interval.
bool cuts_first(const UndersizedTensor& tensor, std::size_t axis) {
  for (std::size_t other : tensor.order) {
    if (cuts_short_dim(tensor, other)) return other == axis;
  }
  return false;
}

// The part of the short dimension that the axis gives to one coordinate.
Cut part_of(const UndersizedTensor& tensor, std::size_t axis, std::int64_t coordinate) {
  return chunk_of(tensor.entry->shape[tensor.dim], tensor.entry->mesh->axes[axis].size, coordinate);
}

struct LayoutInterpretation {
  bool by_part = false;  // each writer cut the part of its own coordinate (uneven parts differ),
                         // not the saved shape
  bool plain = false;    // who leaves an axis out may leave out the strides as well
};

// The saved chunks are those that their writers cut, one by one; and who saved a chunk without
// elements cut none: a rank that would have had some knew the axis that is said to be left out.
// `cut_by` a rank: the shape that it took for the whole, and its box in that.
template <class CutBy>
bool gives_every_chunk(const Checkpoint& c, const UndersizedTensor& tensor, CutBy cut_by) {
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    auto [shape, box] = cut_by(tensor.ranks[i]);
    if (!box || *box != box_of(c, tensor.chunks[i])) return false;
  }
  for (std::size_t i = 0; i < tensor.empty.size(); ++i) {
    auto [shape, box] = cut_by(tensor.empty_ranks[i]);
    // Behind its own whole nobody begins.
    bool behind = c.offsets(tensor.empty[i])[tensor.dim] > shape[tensor.dim];
    if (behind || !box || volume(box->sizes) != 0) return false;
  }
  return true;
}

// The size that was recorded is that of somebody's part.
bool is_a_part(const Checkpoint& c, const UndersizedTensor& tensor, std::size_t axis) {
  std::int64_t saved = c.shape(tensor.tensor)[tensor.dim];
  for (std::int64_t at = 0; at < tensor.entry->mesh->axes[axis].size; ++at) {
    if (part_of(tensor, axis, at).size == saved) return true;
  }
  return false;
}

// By the same layout without `axis`.
bool explains(const Checkpoint& c, const UndersizedTensor& tensor, std::size_t axis,
              LayoutInterpretation reading) {
  if (reading.by_part && !is_a_part(c, tensor, axis)) return false;
  const Mesh& mesh = *tensor.entry->mesh;
  MeshLayout reduced = without_axis(mesh, tensor.entry->placements, axis);
  if (reading.plain) reduced.placements = as_plain(reduced.placements);
  return gives_every_chunk(c, tensor, [&](std::int64_t rank) {
    std::vector<std::int64_t> coordinates = mesh.coordinates(rank);
    Extents shape = copy_of(c.shape(tensor.tensor));
    if (reading.by_part) shape[tensor.dim] = part_of(tensor, axis, coordinates[axis]).size;
    coordinates.erase(coordinates.begin() + static_cast<std::ptrdiff_t>(axis));
    auto box = nested_box(shape, reduced.mesh, reduced.placements, reduced.mesh.rank(coordinates));
    return std::pair(std::move(shape), std::move(box));
  });
}

// Where a rank stands on the axes that cut, but for one of them.
std::vector<std::int64_t> place_without(const UndersizedTensor& tensor, std::size_t axis,
                                        std::int64_t rank) {
  std::vector<std::int64_t> coordinates = tensor.entry->mesh->coordinates(rank);
  for (std::size_t other = 0; other < coordinates.size(); ++other) {
    bool cuts = cut_dim(tensor.entry->placements[other], tensor.entry->shape.size()).has_value();
    if (other == axis || !cuts) coordinates[other] = 0;
  }
  return coordinates;
}

// Ranks that differ in the axis alone claimed one box, and one of them is left: no two chunks come
// from ranks that the other cutting axes do not tell apart. Without it every tensor that is a half
// of what a spec of a larger model expects would pass.
bool one_writer_a_box(const UndersizedTensor& tensor, std::size_t axis) {
  std::set<std::vector<std::int64_t>> boxes;
  for (std::int64_t rank : tensor.ranks) {
    if (!boxes.insert(place_without(tensor, axis, rank)).second) return false;
  }
  return std::none_of(tensor.empty_ranks.begin(), tensor.empty_ranks.end(), [&](std::int64_t rank) {
    return boxes.contains(place_without(tensor, axis, rank));
  });
}

// No torch.chunk grid, but one that fills what one coordinate of the axis holds (Megatron-FSDP's
// flat buckets, failures.md 0.7.12): the axis that cuts first shifts it.
bool fills_one_part(const Checkpoint& c, const UndersizedTensor& tensor, std::size_t axis) {
  if (!tensor.chunks_in_bounds || !cuts_first(tensor, axis) || !one_writer_a_box(tensor, axis))
    return false;
  const Mesh& mesh = *tensor.entry->mesh;
  return std::all_of(tensor.ranks.begin(), tensor.ranks.end(), [&](std::int64_t rank) {
    return part_of(tensor, axis, mesh.coordinates(rank)[axis]).size ==
           c.shape(tensor.tensor)[tensor.dim];
  });
}

// What the item of a chunk holds: its header where it was read, else what the metadata says.
Extents payload_sizes(const CheckInput& input, ChunkId chunk) {
  const std::size_t at = index_of(chunk);
  if (at < input.headers.size() && input.headers.has_value(at)) return input.headers[at]->sizes;
  return copy_of(input.checkpoint.sizes(chunk));
}

bool disjoint(const std::vector<RetainedChunk>& retained_chunks) {
  std::vector<Extents> starts;
  for (const RetainedChunk& retained_chunk : retained_chunks) starts.push_back(retained_chunk.at);
  std::sort(starts.begin(), starts.end());
  return std::adjacent_find(starts.begin(), starts.end()) == starts.end();
}

void place_by_box(const CheckInput& input, const UndersizedTensor& tensor, DroppedAxis& out) {
  const SpecEntry& entry = *tensor.entry;
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    Extents sizes = payload_sizes(input, tensor.chunks[i]);
    // What the rank of that place holds; training's rows first, torch's newest offsets second.
    auto box = nested_box(entry.shape, *entry.mesh, entry.placements, tensor.ranks[i]);
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
  out.placed = disjoint(out.retained_chunks);
  if (!out.placed) out.why_not = "two chunks were written by ranks of the same place";
}

// Buckets are cut unevenly, but in the order of the ranks: the chunks must begin in the order in
// which the spec lets their writers begin, along the short dimension and along those of other axes.
bool lies_in_order(const Checkpoint& c, const UndersizedTensor& tensor, std::size_t axis,
                   std::size_t dim) {
  const SpecEntry& entry = *tensor.entry;
  std::vector<std::pair<std::int64_t, std::int64_t>> begins;  // in the chunk, in the spec
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    std::vector<std::int64_t> coordinates = entry.mesh->coordinates(tensor.ranks[i]);
    coordinates[axis] = 0;
    auto box =
        nested_box(entry.shape, *entry.mesh, entry.placements, entry.mesh->rank(coordinates));
    if (!box) return false;
    begins.emplace_back(c.offsets(tensor.chunks[i])[dim], box->offsets[dim]);
  }
  std::sort(begins.begin(), begins.end());
  return std::is_sorted(begins.begin(), begins.end(),
                        [](const auto& a, const auto& b) { return a.second < b.second; });
}

constexpr const char* kOutOfOrder =
    "its chunks do not lie in the order in which the spec lets their writers begin";

bool lies_in_order(const Checkpoint& c, const UndersizedTensor& tensor, std::size_t axis) {
  for (std::size_t dim = 0; dim < tensor.entry->shape.size(); ++dim) {
    if (!lies_in_order(c, tensor, axis, dim)) return false;
  }
  return true;
}

void place_by_shift(const CheckInput& input, const UndersizedTensor& tensor, DroppedAxis& out) {
  const Mesh& mesh = *tensor.entry->mesh;
  if (!lies_in_order(input.checkpoint, tensor, out.axis)) {
    out.why_not = kOutOfOrder;
    return;
  }
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    Box box = box_of(input.checkpoint, tensor.chunks[i]);
    if (payload_sizes(input, tensor.chunks[i]) != box.sizes) {
      out.why_not = "an item does not hold what its chunk says";
      return;
    }
    std::int64_t coordinate = mesh.coordinates(tensor.ranks[i])[out.axis];
    box.offsets[tensor.dim] += part_of(tensor, out.axis, coordinate).offset;
    out.retained_chunks.push_back(whole_retained_chunk(tensor.chunks[i], box.sizes, box.offsets));
  }
  out.placed = true;
}

DroppedAxis dropped(const CheckInput& input, const UndersizedTensor& tensor, std::size_t axis,
                    bool grid, OffTheGrid& off_the_grid) {
  DroppedAxis out;
  out.tensor = tensor.tensor;
  out.entry = tensor.entry;
  out.axis = axis;
  out.dim = tensor.dim;
  out.by_grid = grid;
  std::int64_t saved = input.checkpoint.shape(tensor.tensor)[tensor.dim];
  out.factor = tensor.entry->shape[tensor.dim] / saved +
               (tensor.entry->shape[tensor.dim] % saved != 0 ? 1 : 0);
  for (std::int64_t rank : tensor.ranks)
    out.coordinates.push_back(tensor.entry->mesh->coordinates(rank)[axis]);
  if (tensor.ranks.empty()) {
    out.why_not = why_no_rank(input, *tensor.entry->mesh);
  } else if (off_the_grid(*tensor.entry, axis)) {
    out.why_not =
        "tensors of this mesh and these placements that were saved whole are not cut "
        "along " +
        tensor.entry->mesh->axes[axis].name +
        " as the spec says, so their writers do not tell where survivors belong";
  } else if (grid) {
    place_by_box(input, tensor, out);
  } else {
    place_by_shift(input, tensor, out);
  }
  return out;
}

// Several axes at once (failures.md 5: FSDP2's own mesh knows neither expert nor expert-tensor
// ranks). One chunk says little of its grid: then the spec must call it an expert's.
bool explains_without(const Checkpoint& c, const UndersizedTensor& tensor, const AxisSet& axes) {
  const Mesh& mesh = *tensor.entry->mesh;
  return gives_every_chunk(c, tensor, [&](std::int64_t rank) {
    MeshLayout reduced{mesh, tensor.entry->placements};
    std::vector<std::int64_t> coordinates = mesh.coordinates(rank);
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      reduced = without_axis(reduced.mesh, reduced.placements, *axis);
      coordinates.erase(coordinates.begin() + static_cast<std::ptrdiff_t>(*axis));
    }
    auto box = nested_box(c.shape(tensor.tensor), reduced.mesh, reduced.placements,
                          reduced.mesh.rank(coordinates));
    return std::pair(copy_of(c.shape(tensor.tensor)), std::move(box));
  });
}

// The smallest sets of axes without which the layout gives every chunk to its writer.
std::vector<AxisSet> sets_that_explain(const Checkpoint& c, const UndersizedTensor& tensor) {
  constexpr std::size_t kMostAxes = 6;
  AxisSet cutting;
  for (std::size_t axis = 0; axis < tensor.entry->mesh->axes.size(); ++axis) {
    if (tensor.entry->mesh->axes[axis].size > 1 &&
        cut_dim(tensor.entry->placements[axis], tensor.entry->shape.size()))
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
    if (!explains_without(c, tensor, set)) continue;
    if (!found.empty() && set.size() < found.front().size()) found.clear();
    found.push_back(std::move(set));
  }
  return found;
}

struct Suspect {
  UndersizedTensor tensor;
  std::vector<std::size_t> axes;  // each of them explains the chunks
  bool grid = true;
  std::vector<AxisSet> sets;  // where none of them does alone: sets that do
};

std::optional<Suspect> suspect(const CheckInput& input, const UndersizedTensor& tensor) {
  const Checkpoint& c = input.checkpoint;
  const Mesh& mesh = *tensor.entry->mesh;
  Suspect out{tensor, {}, true, {}};
  std::int64_t saved = c.shape(tensor.tensor)[tensor.dim];
  std::int64_t expected = tensor.entry->shape[tensor.dim];
  if (!tensor.only_one_dim_short) {
    // No axis alone shortens two dimensions.
  } else if (tensor.ranks.empty()) {
    // Numbers alone: the factor is the size of an axis that cuts this dimension.
    for (std::size_t axis : tensor.order) {
      if (cuts_short_dim(tensor, axis) && expected % saved == 0 &&
          expected / saved == mesh.axes[axis].size)
        out.axes.push_back(axis);
    }
  } else {
    for (std::size_t axis : tensor.order) {
      if (cuts_short_dim(tensor, axis) &&
          (explains(c, tensor, axis, {}) ||
           (cuts_first(tensor, axis) && explains(c, tensor, axis, {.by_part = true})) ||
           explains(c, tensor, axis, {.plain = true})))
        out.axes.push_back(axis);
    }
    if (out.axes.empty()) {
      out.grid = false;
      for (std::size_t axis : tensor.order) {
        if (cuts_short_dim(tensor, axis) && fills_one_part(c, tensor, axis))
          out.axes.push_back(axis);
      }
    }
  }
  if (out.axes.empty()) {
    out.grid = true;
    out.sets = sets_that_explain(c, tensor);
  }
  if (out.axes.empty() && out.sets.empty()) return std::nullopt;
  return out;
}

// Where two axes explain one tensor (the grid of the other has as many parts), the one that
// explains most tensors of the same mesh is the cause, then the one whose size is the factor.
std::size_t choose(const Checkpoint& c, const Suspect& item,
                   const std::map<std::string, std::map<std::size_t, int>>& votes) {
  const auto& mine = votes.at(to_text(*item.tensor.entry->mesh));
  std::int64_t factor =
      item.tensor.entry->shape[item.tensor.dim] / c.shape(item.tensor.tensor)[item.tensor.dim];
  auto score = [&](std::size_t axis) {
    bool fits = item.tensor.entry->mesh->axes[axis].size == factor;
    return 2 * mine.at(axis) + (fits ? 1 : 0);
  };
  // The last of equals: the inner axis, as expert and tensor axes are.
  std::size_t best = item.axes.front();
  for (std::size_t axis : item.axes) {
    if (score(axis) > score(best) || (score(axis) == score(best) && axis > best)) best = axis;
  }
  return best;
}

// Of sets that explain one tensor the one that explains most, the last of equals.
const AxisSet& choose_set(const Suspect& item,
                          const std::map<std::string, std::map<AxisSet, int>>& votes) {
  const auto& mine = votes.at(to_text(*item.tensor.entry->mesh));
  return *std::max_element(item.sets.begin(), item.sets.end(),
                           [&](const AxisSet& a, const AxisSet& b) {
                             return std::pair(mine.at(a), a) < std::pair(mine.at(b), b);
                           });
}

// Where writers stand is a matter of the mesh, not of a tensor: beside tensors of it whose chunks
// lie in another order, those that fit may fit by chance.
void doubt_where_others_do_not_fit(std::vector<DroppedAxis>& found) {
  constexpr std::size_t kFew = 4;  // of one of so many, another failure of its own may be the cause
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
        "the chunks of others on this mesh do not lie in the order in which the spec lets their "
        "writers begin: where these stand is not known";
  }
}

}  // namespace

std::vector<DroppedAxis> dropped_axes(const CheckInput& input) {
  const Checkpoint& c = input.checkpoint;
  std::vector<Suspect> suspects;
  if (input.spec == nullptr) return {};
  for (TensorId id : each_tensor(input)) {
    auto tensor = short_tensor(input, id);
    auto item = tensor && !tensor->chunks.empty() ? suspect(input, *tensor) : std::nullopt;
    if (item) suspects.push_back(std::move(*item));
  }
  if (suspects.empty()) return {};
  // Optimizer states that are one rank's shard have causes of their own.
  std::set<TensorId> explained = split_locally(input);
  explained.merge(saved_as_global(input));
  std::erase_if(suspects,
                [&](const Suspect& item) { return explained.contains(item.tensor.tensor); });
  std::map<std::string, std::map<std::size_t, int>> votes;
  std::map<std::string, std::map<AxisSet, int>> votes_of_sets;
  for (const Suspect& item : suspects) {
    std::string mesh = to_text(*item.tensor.entry->mesh);
    for (std::size_t axis : item.axes) ++votes[mesh][axis];
    for (const AxisSet& set : item.sets) ++votes_of_sets[mesh][set];
  }
  OffTheGrid off_the_grid(input);
  std::vector<DroppedAxis> out;
  for (const Suspect& item : each_of(suspects, input)) {
    AxisSet axes =
        item.axes.empty() ? choose_set(item, votes_of_sets) : AxisSet{choose(c, item, votes)};
    out.push_back(dropped(input, item.tensor, axes.front(), item.grid, off_the_grid));
    out.back().others.assign(axes.begin() + 1, axes.end());
  }
  doubt_where_others_do_not_fit(out);
  return out;
}

}  // namespace shw
