#include "core/facts/layout/spec_layout.h"

#include <algorithm>

#include "core/facts/layout/rank_order_certainty.h"
#include "core/mesh/torch_offset_bugs.h"

namespace shw {
namespace {

// Row-major strides of the ranks along each axis.
std::vector<std::int64_t> strides_of(const Mesh& mesh) {
  std::vector<std::int64_t> strides(mesh.axes.size(), 1);
  for (std::size_t i = mesh.axes.size(); i-- > 1;) strides[i - 1] = strides[i] * mesh.axes[i].size;
  return strides;
}

}  // namespace

bool is_expert_axis(std::string_view name) {
  return name == "ep" || name == "expert" || name == "expert_parallel";
}

std::optional<std::size_t> single_split_dim(const Checkpoint& checkpoint, TensorId tensor) {
  std::optional<std::size_t> dim;
  const ExtentsView shape = checkpoint.shape(tensor);
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    const ExtentsView at = checkpoint.offsets(chunk), sizes = checkpoint.sizes(chunk);
    if (sizes.size() != shape.size() || at.size() != shape.size()) return std::nullopt;
    if (volume(sizes) == 0) continue;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (sizes[d] == shape[d]) continue;
      if (dim && *dim != d) return std::nullopt;
      dim = d;
    }
  }
  return dim;
}

std::optional<std::size_t> sharded_dim_of(const Placement& placement, std::size_t ndim) {
  if (placement.kind != Placement::Kind::kShard && placement.kind != Placement::Kind::kStridedShard)
    return std::nullopt;
  std::int64_t dim =
      placement.dim < 0 ? placement.dim + static_cast<std::int64_t>(ndim) : placement.dim;
  if (dim < 0 || dim >= static_cast<std::int64_t>(ndim)) return std::nullopt;
  return static_cast<std::size_t>(dim);
}

const SpecEntry* layout_of(const CheckInput& input, std::string_view fqn) {
  const SpecEntry* entry = input.spec == nullptr ? nullptr : input.spec->find(fqn);
  if (entry == nullptr || !entry->mesh || entry->placements.empty()) return nullptr;
  if (entry->placements.size() != entry->mesh->axes.size()) return nullptr;
  for (const MeshAxis& axis : entry->mesh->axes) {
    if (axis.size < 1) return nullptr;
  }
  if (entry->mesh->size() > (std::int64_t{1} << 31)) return nullptr;
  for (const Placement& placement : entry->placements) {
    bool cuts = placement.kind == Placement::Kind::kShard ||
                placement.kind == Placement::Kind::kStridedShard;
    if (cuts && !sharded_dim_of(placement, entry->shape.size())) return nullptr;
  }
  return entry;
}

RankMap::RankMap(const CheckInput& input, const Mesh& mesh) {
  if (mesh.size() >= input.ranks && !is_rank_order_uncertain(input, mesh)) ranks_ = mesh.size();
  const Mesh* order = input.mesh != nullptr ? input.mesh : input.proved_mesh.get();
  if (order != nullptr) set_rank_order(*order, mesh);
}

RankMap RankMap::from_saving_mesh(const Mesh& order, const Mesh& mesh) {
  RankMap out;
  out.set_rank_order(order, mesh);
  return out;
}

void RankMap::set_rank_order(const Mesh& order, const Mesh& mesh) {
  std::vector<std::int64_t> strides = strides_of(order);
  const auto& axes = order.axes;
  for (const MeshAxis& axis : mesh.axes) {
    auto found = std::find(axes.begin(), axes.end(), axis);
    if (found != axes.end())
      given_.push_back({strides[static_cast<std::size_t>(found - axes.begin())], axis.size});
    else if (axis.size == 1)
      given_.push_back({1, 1});
  }
  if (given_.size() == mesh.axes.size() && !given_.empty()) given_ranks_ = order.size();
}

std::optional<std::int64_t> RankMap::rank_of_writer(std::uint32_t writer) const {
  if (writer < given_ranks_) {
    std::int64_t rank = 0;
    for (const Axis& axis : given_) rank = rank * axis.size + writer / axis.stride % axis.size;
    return rank;
  }
  if (given_ranks_ != 0 || writer >= ranks_) return std::nullopt;
  return writer;
}

std::optional<std::int64_t> rank_in_mesh(const CheckInput& input, const Mesh& mesh,
                                         std::uint32_t writer) {
  return RankMap(input, mesh).rank_of_writer(writer);
}

std::optional<std::vector<std::size_t>> split_axis_order(const SpecEntry& entry) {
  auto order = execution_order_of_splits(*entry.mesh, entry.placements);
  if (!order) return std::nullopt;
  return *order;
}

SplitLayout::SplitLayout(const SpecEntry& entry, std::span<const std::size_t> order)
    : shape_(entry.shape) {
  std::vector<std::int64_t> strides = strides_of(*entry.mesh);
  for (std::size_t axis : order) {
    auto d = sharded_dim_of(entry.placements[axis], entry.shape.size());
    if (d) steps_.push_back({*d, entry.mesh->axes[axis].size, strides[axis]});
  }
}

Cut SplitLayout::part_of_rank(std::int64_t rank, std::size_t dim) const {
  Cut all{0, shape_[dim]};
  for (const Step& step : steps_) {
    if (step.dim != dim) continue;
    Cut part = chunk_of(all.size, step.parts, rank / step.stride % step.parts);
    all = {all.offset + part.offset, part.size};
  }
  if (all.size == 0) all.offset = shape_[dim];
  return all;
}

bool SplitLayout::produces_box(std::int64_t rank, ExtentsView offsets, ExtentsView sizes) const {
  if (offsets.size() != shape_.size() || sizes.size() != shape_.size()) return false;
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    Cut mine = part_of_rank(rank, d);
    if (mine.offset != offsets[d] || mine.size != sizes[d]) return false;
  }
  return true;
}

bool SplitLayout::produces_sizes(std::int64_t rank, ExtentsView sizes) const {
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    if (d >= sizes.size() || part_of_rank(rank, d).size != sizes[d]) return false;
  }
  return true;
}

Box SplitLayout::box(std::int64_t rank) const {
  Box box = whole(shape_);
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    Cut mine = part_of_rank(rank, d);
    box.offsets[d] = mine.offset;
    box.sizes[d] = mine.size;
  }
  return box;
}

bool is_expert(const SpecEntry& entry) {
  if (entry.role.find("expert") != std::string::npos) return true;
  if (!entry.mesh) return false;
  return std::any_of(entry.mesh->axes.begin(), entry.mesh->axes.end(), [](const MeshAxis& axis) {
    return axis.size > 1 && (axis.name == "ep" || axis.name.find("expert") != std::string::npos);
  });
}

std::optional<std::vector<std::int64_t>> place_of(const RankMap& ranks, const SpecEntry& entry,
                                                  std::uint32_t writer) {
  auto rank = ranks.rank_of_writer(writer);
  if (!rank) return std::nullopt;
  std::vector<std::int64_t> place = entry.mesh->coordinates(*rank);
  for (std::size_t axis = 0; axis < place.size(); ++axis) {
    if (!sharded_dim_of(entry.placements[axis], entry.shape.size())) place[axis] = 0;
  }
  return place;
}

Agreement layout_agreement(const CheckInput& input, const std::set<TensorId>& skip,
                           const Mesh* of_mesh) {
  constexpr int kTensors = 200;
  constexpr std::uint32_t kChunks = 64;
  Agreement agreement;
  const Checkpoint& c = input.checkpoint;
  int looked_at = 0;
  for (TensorId tensor : each_tensor(input)) {
    if (looked_at == kTensors) break;
    const SpecEntry* entry = layout_of(input, c.fqn(tensor));
    if (entry == nullptr || c.chunks(tensor).size() < 2 || !same(c.shape(tensor), entry->shape))
      continue;
    if (skip.contains(tensor) || (of_mesh != nullptr && *entry->mesh != *of_mesh)) continue;
    ++looked_at;
    bool agrees = true;
    for (std::uint32_t i = 0; i < std::min(c.chunks(tensor).size(), kChunks) && agrees; ++i) {
      ChunkId chunk = c.chunks(tensor)[i];
      auto writer = c.writer(chunk);
      auto rank = writer ? rank_in_mesh(input, *entry->mesh, *writer) : std::nullopt;
      if (!rank || volume(c.sizes(chunk)) == 0) continue;
      auto box = local_box(entry->shape, *entry->mesh, entry->placements, *rank);
      agrees = box && *box == box_of(c, chunk);
    }
    ++(agrees ? agreement.agree : agreement.disagree);
  }
  return agreement;
}

}  // namespace shw
