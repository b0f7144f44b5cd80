#include "core/facts/layout/off_the_grid.h"

#include "core/facts/layout/spec_layout.h"
#include "core/mesh/torch_offset_bugs.h"

namespace shw {
namespace {

std::string name_of_layout(const SpecEntry& entry) {
  return to_text(*entry.mesh) + to_text(entry.placements);
}

}  // namespace

bool OffGridChunks::operator()(const SpecEntry& entry, std::size_t axis) {
  if (!looked_) find_off_grid_chunks();
  auto found = axes_.find(name_of_layout(entry));
  return found != axes_.end() && found->second.contains(axis);
}

void OffGridChunks::find_off_grid_chunks() {
  looked_ = true;
  const Checkpoint& c = input_.checkpoint;
  for (TensorId tensor : each_tensor(input_)) {
    const SpecEntry* entry = layout_of(input_, c.fqn(tensor));
    if (entry == nullptr || !same(entry->shape, c.shape(tensor))) continue;
    for (ChunkId chunk : c.chunks(tensor)) add_chunk(*entry, chunk);
  }
}

// A chunk is on the grid if its size matches any reading of the placements; offsets may be wrong
// for other reasons.
void OffGridChunks::add_chunk(const SpecEntry& entry, ChunkId chunk) {
  const Checkpoint& c = input_.checkpoint;
  auto writer = c.writer(chunk);
  auto rank = writer ? rank_in_mesh(input_, *entry.mesh, *writer) : std::nullopt;
  ExtentsView offsets = c.offsets(chunk), sizes = c.sizes(chunk);
  if (!rank || offsets.size() != entry.shape.size() || volume(sizes) == 0) return;
  for (auto box : {box_of_nested_splits(entry.shape, *entry.mesh, entry.placements, *rank),
                   local_box(entry.shape, *entry.mesh, entry.placements, *rank)}) {
    if (box && same(box->sizes, sizes)) return;
  }
  std::vector<std::int64_t> at = entry.mesh->coordinates(*rank);
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    auto dim = sharded_dim_of(entry.placements[axis], entry.shape.size());
    if (!dim) continue;
    Cut part = chunk_of(entry.shape[*dim], entry.mesh->axes[axis].size, at[axis]);
    if (offsets[*dim] < part.offset || offsets[*dim] + sizes[*dim] > part.offset + part.size)
      axes_[name_of_layout(entry)].insert(axis);
  }
}

}  // namespace shw
