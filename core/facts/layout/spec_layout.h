// Relates saved chunks to the spec's layout: the position of the writing rank on the
// spec's mesh, the box that this rank should hold, and whether other tensors confirm the
// mesh.
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

// The spec's entry if its mesh, placements and shape are consistent; else null.
const SpecEntry* layout_of(const CheckInput& input, std::string_view fqn);

// Position on `mesh` of global rank `writer`: by the user's mesh, or by
// CheckInput::proved_mesh, if that has all axes of `mesh`. Otherwise `mesh` must hold all
// writing ranks, row-major, and no tensor may contradict its order (rank_orders.h). nullopt if
// neither applies.
std::optional<std::int64_t> rank_in_mesh(const CheckInput& input, const Mesh& mesh,
                                         std::uint32_t writer);

// rank_in_mesh() for many writers with shared lookups.
class RankMap {
 public:
  RankMap(const CheckInput& input, const Mesh& mesh);
  // Assumes that `order` is the mesh that saved: nullopt for all writers if it lacks an axis of
  // `mesh`.
  static RankMap from_saving_mesh(const Mesh& order, const Mesh& mesh);
  std::optional<std::int64_t> rank_of_writer(std::uint32_t writer) const;

 private:
  struct Axis {
    std::int64_t stride = 1, size = 1;  // in the user's mesh
  };
  RankMap() = default;
  void set_rank_order(const Mesh& order, const Mesh& mesh);

  std::vector<Axis> given_;  // one per axis of `mesh`; empty if the user's mesh lacks one
  std::int64_t given_ranks_ = 0;
  std::int64_t ranks_ = 0;  // ranks of `mesh`; 0 if it cannot hold all writers
};

// The axes that split, in the order in which the placements split (strided axes last).
std::optional<std::vector<std::size_t>> split_axis_order(const SpecEntry& entry);
// Computes boxes of ranks for any split order, without allocations.
class SplitLayout {
 public:
  SplitLayout(const SpecEntry& entry, std::span<const std::size_t> order);
  bool produces_box(std::int64_t rank, ExtentsView offsets, ExtentsView sizes) const;
  bool produces_sizes(std::int64_t rank, ExtentsView sizes) const;
  Box box(std::int64_t rank) const;

 private:
  struct Step {
    std::size_t dim = 0;
    std::int64_t parts = 1, stride = 1;
  };
  Cut part_of_rank(std::int64_t rank, std::size_t dim) const;

  ExtentsView shape_;
  std::vector<Step> steps_;
};
// The single dimension along which the non-empty chunks of a tensor differ; nullopt if there are
// several, or if a chunk has another rank.
std::optional<std::size_t> single_split_dim(const Checkpoint& checkpoint, TensorId tensor);
// The dimension that a placement splits; nullopt for Replicate and Partial.
std::optional<std::size_t> sharded_dim_of(const Placement& placement, std::size_t ndim);

// Coordinates of a writer on the splitting axes: ranks with equal coordinates hold replicas.
std::optional<std::vector<std::int64_t>> place_of(const RankMap& ranks, const SpecEntry& entry,
                                                  std::uint32_t writer);

// True for axis names such as "ep" and "expert_parallel".
bool is_expert_axis(std::string_view name);
// True if the entry's role or an axis marks it as experts.
bool is_expert(const SpecEntry& entry);

// Counts tensors split over several ranks that match the spec for their writers, up to 200 of them;
// `skip`: tensors in question. Tensors of one mesh do not confirm another: flat buckets may be
// split at any row next to a grid.
struct Agreement {
  std::int64_t agree = 0, disagree = 0;
  bool contradicts() const { return disagree > agree; }
  bool has_no_votes() const { return disagree == 0 && agree == 0; }
};
Agreement layout_agreement(const CheckInput& input, const std::set<TensorId>& skip,
                           const Mesh* of_mesh = nullptr);  // null: any mesh

}  // namespace shw
