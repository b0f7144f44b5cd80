// How what lies on disk relates to the layout that a spec names: which rank of the spec's mesh
// wrote a chunk, which box that rank holds, and whether other tensors agree that this mesh saved
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/facts/check_input.h"
#include "core/model/checkpoint.h"
#include "core/spec/spec.h"

namespace shw {

// The spec's entry with mesh and placements that fit each other and the shape, or null.
const SpecEntry* layout_of(const CheckInput& input, std::string_view fqn);

// Rank on `mesh` of the global rank `writer`. From what the person said, or else the tensors
// (CheckInput::proved_mesh), where that names all axes of `mesh`; otherwise the mesh must hold
// every rank that wrote anything, row-major, and no tensor may contradict its order
// (rank_orders.h). Nothing where neither is so.
std::optional<std::int64_t> rank_on(const CheckInput& input, const Mesh& mesh,
                                    std::uint32_t writer);

// The same for many writers: what it needs is looked up once.
class RankMap {
 public:
  RankMap(const CheckInput& input, const Mesh& mesh);
  // As if `order` were the mesh that saved: nothing for any writer where it lacks an axis of
  // `mesh`.
  static RankMap counted_over(const Mesh& order, const Mesh& mesh);
  std::optional<std::int64_t> of(std::uint32_t writer) const;

 private:
  struct Axis {
    std::int64_t stride = 1, size = 1;  // in what the person said
  };
  RankMap() = default;
  void count_over(const Mesh& order, const Mesh& mesh);

  std::vector<Axis> given_;  // one an axis of `mesh`; empty where the person's does not name all
  std::int64_t given_ranks_ = 0;
  std::int64_t ranks_ = 0;  // of `mesh`; 0 where it cannot hold all that wrote
};

// Axes that cut, in the order in which the entry's placements cut them (a strided axis last).
std::optional<std::vector<std::size_t>> cut_order(const SpecEntry& entry);
// The boxes of ranks when axes are cut in an order of one's own, without an allocation for each.
class Cutter {
 public:
  Cutter(const SpecEntry& entry, std::span<const std::size_t> order);
  bool gives(std::int64_t rank, ExtentsView offsets, ExtentsView sizes) const;
  bool gives_sizes(std::int64_t rank, ExtentsView sizes) const;
  Box box(std::int64_t rank) const;

 private:
  struct Step {
    std::size_t dim = 0;
    std::int64_t parts = 1, stride = 1;
  };
  Cut cut(std::int64_t rank, std::size_t dim) const;

  ExtentsView shape_;
  std::vector<Step> steps_;
};
// The dimension along which the chunks of a tensor part, empty ones aside; nothing where it is not
// one, or a chunk has another number of dimensions.
std::optional<std::size_t> only_cut_dim(const Checkpoint& checkpoint, TensorId tensor);
// The dimension that a placement cuts; nothing for Replicate and Partial.
std::optional<std::size_t> cut_dim(const Placement& placement, std::size_t ndim);

// Where a writer stands on the axes that cut: ranks of one place hold the same elements.
std::optional<std::vector<std::int64_t>> place_of(const RankMap& ranks, const SpecEntry& entry,
                                                  std::uint32_t writer);

// "ep", "expert_parallel".
bool is_expert_axis(std::string_view name);
// Does the entry speak of experts: by its role, or by an axis that carries them?
bool is_expert(const SpecEntry& entry);

// Do other tensors, cut by several ranks, lie as the spec says for their writers? Looks at no more
// than 200 of them; `skip` names those that are in question. Those of one mesh say nothing of
// another one: buckets that are cut at any row beside a grid.
struct Agreement {
  std::int64_t agree = 0, disagree = 0;
  bool contradicts() const { return disagree > agree; }
  bool says_nothing() const { return disagree == 0 && agree == 0; }
};
Agreement layout_agreement(const CheckInput& input, const std::set<TensorId>& skip,
                           const Mesh* of_mesh = nullptr);  // null: of any

}  // namespace shw
