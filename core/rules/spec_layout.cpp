#include "core/rules/spec_layout.h"

#include <algorithm>

#include "core/mesh/error_models.h"

namespace shw {
namespace {

std::int64_t ranks_that_wrote(const Checkpoint& checkpoint) {
  std::int64_t ranks = 0;
  for (const FileRow& file : checkpoint.files()) {
    if (file.rank && file.referenced) ranks = std::max<std::int64_t>(ranks, *file.rank + 1);
  }
  return ranks;
}

}  // namespace

std::optional<std::size_t> cut_dim(const Placement& placement, std::size_t ndim) {
  if (placement.kind != Placement::Kind::kShard && placement.kind != Placement::Kind::kStridedShard)
    return std::nullopt;
  std::int64_t dim =
      placement.dim < 0 ? placement.dim + static_cast<std::int64_t>(ndim) : placement.dim;
  if (dim < 0 || dim >= static_cast<std::int64_t>(ndim)) return std::nullopt;
  return static_cast<std::size_t>(dim);
}

const SpecEntry* layout_of(const RuleInput& input, std::string_view fqn) {
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
    if (cuts && !cut_dim(placement, entry->shape.size())) return nullptr;
  }
  return entry;
}

std::optional<std::int64_t> rank_on(const RuleInput& input, const Mesh& mesh,
                                    std::uint32_t writer) {
  if (input.mesh != nullptr && writer < input.mesh->size()) {
    std::vector<std::int64_t> given = input.mesh->coordinates(writer);
    std::vector<std::int64_t> mine;
    for (const MeshAxis& axis : mesh.axes) {
      const auto& axes = input.mesh->axes;
      auto found = std::find(axes.begin(), axes.end(), axis);
      if (found != axes.end())
        mine.push_back(given[static_cast<std::size_t>(found - axes.begin())]);
      else if (axis.size == 1)
        mine.push_back(0);
    }
    if (mine.size() == mesh.axes.size()) return mesh.rank(mine);
  }
  if (mesh.size() < ranks_that_wrote(input.checkpoint) || writer >= mesh.size())
    return std::nullopt;
  return writer;
}

Box saved_box(const Checkpoint& checkpoint, ChunkId chunk) {
  return Box{copy_of(checkpoint.offsets(chunk)), copy_of(checkpoint.sizes(chunk))};
}

std::optional<std::vector<std::size_t>> cut_order(const SpecEntry& entry) {
  auto order = order_of_cuts(*entry.mesh, entry.placements);
  if (!order) return std::nullopt;
  return *order;
}

Box box_in_order(ExtentsView shape, const Mesh& mesh, const std::vector<Placement>& placements,
                 std::span<const std::size_t> order, std::int64_t rank) {
  std::vector<std::int64_t> coordinates = mesh.coordinates(rank);
  Box box = whole(shape);
  for (std::size_t axis : order) {
    auto d = cut_dim(placements[axis], shape.size());
    if (!d) continue;
    Cut cut = chunk_of(box.sizes[*d], mesh.axes[axis].size, coordinates[axis]);
    box.offsets[*d] += cut.offset;
    box.sizes[*d] = cut.size;
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (box.sizes[d] == 0) box.offsets[d] = shape[d];
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

Agreement layout_agreement(const RuleInput& input, const std::vector<std::string>& skip) {
  constexpr int kTensors = 200;
  constexpr std::uint32_t kChunks = 64;
  Agreement agreement;
  const Checkpoint& c = input.checkpoint;
  int looked_at = 0;
  for (std::uint32_t t = 0; t < c.tensor_count() && looked_at < kTensors; ++t) {
    TensorId tensor{t};
    const SpecEntry* entry = layout_of(input, c.fqn(tensor));
    if (entry == nullptr || c.chunks(tensor).size() < 2 || !same(c.shape(tensor), entry->shape))
      continue;
    if (std::find(skip.begin(), skip.end(), c.fqn(tensor)) != skip.end()) continue;
    ++looked_at;
    bool agrees = true;
    for (std::uint32_t i = 0; i < std::min(c.chunks(tensor).size(), kChunks) && agrees; ++i) {
      ChunkId chunk = c.chunks(tensor)[i];
      auto writer = c.writer(chunk);
      auto rank = writer ? rank_on(input, *entry->mesh, *writer) : std::nullopt;
      if (!rank || volume(c.sizes(chunk)) == 0) continue;
      auto box = local_box(entry->shape, *entry->mesh, entry->placements, *rank);
      agrees = box && *box == saved_box(c, chunk);
    }
    ++(agrees ? agreement.agree : agreement.disagree);
  }
  return agreement;
}

}  // namespace shw
