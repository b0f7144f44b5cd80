// How what lies on disk relates to the layout that a spec names: which rank of the spec's mesh
// wrote a chunk, which box that rank holds, and whether other tensors agree that this mesh saved
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/rules/check.h"
#include "core/spec/spec.h"

namespace shw {

// The spec's entry with mesh and placements that fit each other and the shape, or null.
const SpecEntry* layout_of(const RuleInput& input, std::string_view fqn);

// Rank on `mesh` of the global rank `writer`. From what the person said where that names all axes
// of `mesh`; otherwise the mesh must hold every rank that wrote anything, row-major. Nothing where
// neither is so.
std::optional<std::int64_t> rank_on(const RuleInput& input, const Mesh& mesh, std::uint32_t writer);

Box saved_box(const Checkpoint& checkpoint, ChunkId chunk);

// Axes that cut, in the order in which the entry's placements cut them (a strided axis last).
std::optional<std::vector<std::size_t>> cut_order(const SpecEntry& entry);
// The box of `rank` when the same axes are cut in another order.
Box box_in_order(ExtentsView shape, const Mesh& mesh, const std::vector<Placement>& placements,
                 std::span<const std::size_t> order, std::int64_t rank);
// The dimension that a placement cuts; nothing for Replicate and Partial.
std::optional<std::size_t> cut_dim(const Placement& placement, std::size_t ndim);

// Does the entry speak of experts: by its role, or by an axis that carries them?
bool is_expert(const SpecEntry& entry);

// Do other tensors, cut by several ranks, lie as the spec says for their writers? Looks at no more
// than 200 of them; `skip` names those that are in question.
struct Agreement {
  std::int64_t agree = 0, disagree = 0;
  bool contradicts() const { return disagree > agree; }
};
Agreement layout_agreement(const RuleInput& input, const std::vector<std::string>& skip);

}  // namespace shw
