// Experts of all EP ranks are stacked in one key. The row order depends on which axis splits first,
// so a checkpoint fits one topology. Only the spec decides: nothing is reported if it agrees with
// the saved order.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "core/facts/facts.h"
#include "core/facts/layout/spec_layout.h"
#include "core/facts/layout/split_orders.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// A key that numbers one rank's experts ("weight0") stacks those of all EP ranks.
bool is_local_expert(std::string_view fqn) {
  return !fqn.empty() && std::isdigit(static_cast<unsigned char>(fqn.back())) != 0;
}

// The permutation of equal blocks along the deviating dimension; nullopt if chunks are not such
// blocks.
std::optional<BlocksPermuted> as_block_permutation(const Checkpoint& c,
                                                   const DifferentOrder& item) {
  BlocksPermuted out{item.tensor, 0, 0, {}};
  std::optional<std::size_t> dim;
  for (std::uint32_t i = 0; i < c.chunks(item.tensor).size(); ++i) {
    ExtentsView saved = c.offsets(c.chunks(item.tensor)[i]);
    for (std::size_t d = 0; d < saved.size(); ++d) {
      if (saved[d] == item.boxes[i].offsets[d]) continue;
      if (dim && *dim != d) return std::nullopt;
      dim = d;
    }
  }
  if (!dim) return std::nullopt;
  out.dim = *dim;
  for (const Box& box : item.boxes) {
    if (is_empty(box)) continue;
    if (out.block != 0 && box.sizes[*dim] != out.block) return std::nullopt;
    out.block = box.sizes[*dim];
  }
  if (out.block == 0 || item.entry->shape[*dim] % out.block != 0) return std::nullopt;
  out.order.assign(static_cast<std::size_t>(item.entry->shape[*dim] / out.block), -1);
  for (std::uint32_t i = 0; i < c.chunks(item.tensor).size(); ++i) {
    if (is_empty(item.boxes[i])) continue;
    std::int64_t from = c.offsets(c.chunks(item.tensor)[i])[*dim];
    std::int64_t to = item.boxes[i].offsets[*dim];
    std::int64_t& slot = out.order[static_cast<std::size_t>(to / out.block)];
    if (to % out.block != 0 || from % out.block != 0) return std::nullopt;
    if (slot != -1 && slot != from / out.block) return std::nullopt;
    slot = from / out.block;
  }
  if (std::find(out.order.begin(), out.order.end(), -1) != out.order.end()) return std::nullopt;
  return out;
}

void add_wrong_order(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  Finding finding{.rule = "topology-locked", .severity = Severity::kWarning};
  finding.link = "ISEEKYAN/Megatron-LM #61";
  for (const DifferentOrder& item : facts.other_orders) {
    if (!is_expert(*item.entry)) continue;
    std::string saved = order_text(*item.entry->mesh, item.saved);
    std::string expected = order_text(*item.entry->mesh, item.expected);
    if (finding.subjects.empty()) {
      finding.cause = "The rows of " + std::string(c.fqn(item.tensor)) + " are in the order of " +
                      saved + ", the model asks for " + expected +
                      ": it loads without an error and mixes experts.";
      finding.evidence = {{"mesh", to_text(*item.entry->mesh)},
                          {"order_on_disk", saved},
                          {"order_that_the_model_asks_for", expected}};
      if (auto blocks = as_block_permutation(c, item)) {
        finding.evidence.emplace_back("dimension", static_cast<std::int64_t>(blocks->dim));
        finding.evidence.emplace_back("rows_a_block", blocks->block);
        if (blocks->order.size() <= 64)
          finding.evidence.emplace_back("block_on_disk_of_true_block", Extents(blocks->order));
      }
    }
    finding.subjects.emplace_back(c.fqn(item.tensor));
    if (auto blocks = as_block_permutation(c, item))
      finding.diagnoses.emplace_back(std::move(*blocks));
    else
      finding.diagnoses.emplace_back(WrongBoxes{item.tensor, item.entry->shape, item.boxes});
  }
  if (finding.subjects.empty()) return;
  finding.remedy = Remedy{"permute-blocks", true,
                          "Put the blocks in the order that the model expects: nothing is lost."};
  findings.push_back(std::move(finding));
}

std::int64_t pieces_along(const Checkpoint& c, TensorId tensor, std::size_t dim) {
  std::vector<std::int64_t> starts;
  for (ChunkId chunk : c.chunks(tensor)) {
    if (volume(c.sizes(chunk)) != 0) starts.push_back(c.offsets(chunk)[dim]);
  }
  std::sort(starts.begin(), starts.end());
  return std::unique(starts.begin(), starts.end()) - starts.begin();
}

// How a topology stacks rows along one dimension: each expert rank has an interval, each of its
// FSDP ranks an equal part of it.
struct StackedExperts {
  std::int64_t experts = 1, part = 1, parts = 1;  // expert ranks, rows per rank, ranks per interval
  bool parts_first = true;                        // the FSDP axis splits first
  std::int64_t rows() const { return part * parts; }
  bool keeps_row_order() const { return !parts_first || experts == 1 || parts == 1; }
  // For equal numbers of rows: compares the first jump, from row `part` to `part` *
  // `experts`.
  bool has_same_row_order(const StackedExperts& other) const {
    if (keeps_row_order() || other.keeps_row_order())
      return keeps_row_order() == other.keeps_row_order();
    return part == other.part && experts == other.experts;
  }
  // The position of `row`, counted through the experts of all ranks.
  std::int64_t place(std::int64_t row) const {
    if (!parts_first) return row;
    std::int64_t expert = row / rows(), mine = row % rows();
    return (mine / part * experts + expert) * part + mine % part;
  }
};

struct SavedAndExpectedTopology {
  SpecEntry saved;  // the spec's entry on the user's mesh
  std::size_t dim = 0;
  StackedExperts on_disk, expected;
};

// The spec's axes that stack experts along one dimension: the expert axis and one that splits each
// expert.
std::optional<SavedAndExpectedTopology> two_topologies(const Mesh& given, const SpecEntry& entry,
                                                       std::string_view fqn) {
  SavedAndExpectedTopology out;
  out.saved = entry;
  std::optional<std::size_t> experts, parts;
  for (std::size_t i = 0; i < entry.mesh->axes.size(); ++i) {
    MeshAxis& axis = out.saved.mesh->axes[i];
    auto found = std::find_if(given.axes.begin(), given.axes.end(),
                              [&](const MeshAxis& other) { return other.name == axis.name; });
    if (found != given.axes.end()) axis.size = found->size;
    if (found == given.axes.end() && axis.size > 1) return std::nullopt;
    if (is_expert_axis(axis.name)) experts = i;
  }
  if (out.saved.mesh == entry.mesh || !experts) return std::nullopt;
  auto dim = sharded_dim_of(entry.placements[*experts], entry.shape.size());
  if (!dim) return std::nullopt;
  out.dim = *dim;
  for (std::size_t i = 0; i < entry.mesh->axes.size(); ++i) {
    bool cuts = entry.mesh->axes[i].size > 1 || out.saved.mesh->axes[i].size > 1;
    if (i == *experts || !cuts || sharded_dim_of(entry.placements[i], entry.shape.size()) != dim)
      continue;
    if (parts) return std::nullopt;
    parts = i;
  }
  auto order = split_axis_order(entry);
  if (!parts || !order) return std::nullopt;
  const auto& was = out.saved.mesh->axes;
  const auto& asked = entry.mesh->axes;
  // With another number of expert ranks, keys that number one rank's experts hold other experts,
  // which no order repairs. Keys with all experts keep them.
  if (was[*experts].size != asked[*experts].size && is_local_expert(fqn)) return std::nullopt;
  std::int64_t rows = entry.shape[*dim];
  auto cut_by = [&](const std::vector<MeshAxis>& axes) {
    return axes[*experts].size * axes[*parts].size;
  };
  if (rows <= 0 || rows % cut_by(was) != 0 || rows % cut_by(asked) != 0) return std::nullopt;
  bool first = std::find(order->begin(), order->end(), *parts) <
               std::find(order->begin(), order->end(), *experts);
  out.on_disk = {was[*experts].size, rows / cut_by(was), was[*parts].size, first};
  out.expected = {asked[*experts].size, rows / cut_by(asked), asked[*parts].size, first};
  return out;
}

// True if all chunks have the boxes of the user's mesh. `parts_first`: the axis that splits each
// expert is applied before the expert axis.
bool matches_split_order(const Facts& facts, TensorId tensor, const SavedAndExpectedTopology& two,
                         bool parts_first) {
  const Checkpoint& c = facts.checkpoint;
  const SpecEntry& entry = two.saved;
  std::vector<std::size_t> order, stacked;
  for (std::size_t i = 0; i < entry.placements.size(); ++i) {
    auto dim = sharded_dim_of(entry.placements[i], entry.shape.size());
    if (!dim) continue;
    if (*dim != two.dim)
      order.push_back(i);
    else if (is_expert_axis(entry.mesh->axes[i].name) == parts_first)
      stacked.push_back(i);  // splits last
    else
      stacked.insert(stacked.begin(), i);
  }
  order.insert(order.end(), stacked.begin(), stacked.end());
  RankMap ranks(facts, *entry.mesh);
  SplitLayout cutter(entry, order);
  for (ChunkId chunk : c.chunks(tensor)) {
    if (volume(c.sizes(chunk)) == 0) continue;
    auto writer = c.writer(chunk);
    auto rank = writer ? ranks.rank_of_writer(*writer) : std::nullopt;
    if (!rank || !cutter.produces_box(*rank, c.offsets(chunk), c.sizes(chunk))) return false;
  }
  return true;
}

// Limit: each block is a row of the plan.
constexpr std::int64_t kMaxBlocks = 1 << 20;

BlocksPermuted permutation_between(TensorId tensor, const SavedAndExpectedTopology& two,
                                   std::int64_t rows) {
  BlocksPermuted out{tensor, two.dim, std::gcd(two.on_disk.part, two.expected.part), {}};
  if (rows / out.block > kMaxBlocks) return out;
  out.order.resize(static_cast<std::size_t>(rows / out.block));
  for (std::int64_t row = 0; row < rows; row += out.block)
    out.order[static_cast<std::size_t>(two.expected.place(row) / out.block)] =
        two.on_disk.place(row) / out.block;
  return out;
}

// Reports permutations if the user's mesh saved and the spec's mesh loads: the order is known.
void add_between_topologies(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.mesh == nullptr || facts.spec == nullptr) return;
  const Checkpoint& c = facts.checkpoint;
  Finding finding, too_many;
  for (Finding* one : {&finding, &too_many}) {
    one->rule = "topology-locked";
    one->severity = Severity::kWarning;
    one->link = "ISEEKYAN/Megatron-LM #61";
  }
  for (TensorId tensor : each_tensor(facts)) {
    const SpecEntry* entry = layout_of(facts, c.fqn(tensor));
    if (entry == nullptr || !is_expert(*entry) || !same(entry->shape, c.shape(tensor))) continue;
    if (!c.writers_are_owners(tensor)) continue;
    auto two = two_topologies(*facts.mesh, *entry, c.fqn(tensor));
    if (!two) continue;
    bool as_spec = two->on_disk.parts_first;
    if (!matches_split_order(facts, tensor, *two, as_spec)) {
      if (!matches_split_order(facts, tensor, *two, !as_spec)) continue;
      two->on_disk.parts_first = !as_spec;
    }
    if (two->on_disk.has_same_row_order(two->expected)) continue;
    BlocksPermuted blocks = permutation_between(tensor, *two, entry->shape[two->dim]);
    Finding& into = blocks.order.empty() ? too_many : finding;
    if (into.subjects.empty()) {
      into.cause = "The experts stacked in " + std::string(c.fqn(tensor)) + " were saved on " +
                   to_text(*facts.mesh) + " and the model asks for " + to_text(*entry->mesh) +
                   ": the sizes match, but the rows of the experts are in a different order.";
      into.evidence = {{"mesh_that_saved", to_text(*facts.mesh)},
                       {"mesh_of_the_model", to_text(*entry->mesh)},
                       {"rows_a_block", blocks.block}};
      if (!blocks.order.empty() && blocks.order.size() <= 64)
        into.evidence.emplace_back("block_on_disk_of_true_block", Extents(blocks.order));
    }
    into.subjects.emplace_back(c.fqn(tensor));
    if (!blocks.order.empty()) into.diagnoses.emplace_back(std::move(blocks));
  }
  if (!too_many.subjects.empty()) {
    too_many.cause += fmt::format(
        " They are more than {} blocks, the most that a repair can reorder: load it with the "
        "topology that saved it.",
        kMaxBlocks);
    findings.push_back(std::move(too_many));
  }
  if (finding.subjects.empty()) return;
  finding.remedy = Remedy{"permute-blocks", true,
                          "Put the blocks in the order that the model expects: nothing is lost."};
  findings.push_back(std::move(finding));
}

// Reports tensors saved by another topology than the spec's: sizes fit, but chunks do not tell the
// order.
void add_different_topology(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.spec == nullptr) return;
  const Checkpoint& c = facts.checkpoint;
  Finding finding{.rule = "topology-locked", .severity = Severity::kWarning};
  finding.link = "ISEEKYAN/Megatron-LM #61";
  for (TensorId tensor : each_tensor(facts)) {
    if (!is_local_expert(c.fqn(tensor)) || c.chunks(tensor).empty()) continue;
    if (!c.writers_are_owners(tensor)) continue;
    const SpecEntry* entry = layout_of(facts, c.fqn(tensor));
    if (entry == nullptr || !is_expert(*entry) || !same(entry->shape, c.shape(tensor))) continue;
    std::int64_t cut_into = 1, axes = 0;
    std::size_t dim = 0;
    for (std::size_t axis = 0; axis < entry->placements.size(); ++axis) {
      auto d = sharded_dim_of(entry->placements[axis], entry->shape.size());
      if (!d || entry->mesh->axes[axis].size < 2 || (axes != 0 && *d != dim)) continue;
      dim = *d;
      cut_into *= entry->mesh->axes[axis].size;
      ++axes;
    }
    bool regular = true;
    for (ChunkId chunk : c.chunks(tensor))
      regular = regular && is_inside(c.offsets(chunk), c.sizes(chunk), c.shape(tensor));
    std::int64_t pieces = axes > 1 && regular ? pieces_along(c, tensor, dim) : 0;
    // More parts than the spec's ranks: a saver with more ranks on these axes. Fewer may come from
    // a dense saver or a repair.
    if (pieces <= cut_into || entry->shape[dim] < cut_into) continue;
    if (finding.subjects.empty()) {
      finding.cause = fmt::format(
          "The experts in {} were saved by {} shards and the model expects {}: the order of "
          "stacked experts depends on the topology, and sizes alone do not show it. Give the mesh "
          "that saved it (--mesh) to decide the order.",
          c.fqn(tensor), pieces, cut_into);
      finding.evidence = {{"shards_on_disk", pieces},
                          {"shards_that_the_model_asks_for", cut_into},
                          {"mesh_of_the_model", to_text(*entry->mesh)}};
    }
    finding.subjects.emplace_back(c.fqn(tensor));
  }
  if (!finding.subjects.empty()) findings.push_back(std::move(finding));
}

void find_locked_topologies(const Facts& facts, std::vector<Finding>& findings) {
  add_wrong_order(facts, findings);
  std::size_t before = findings.size();
  add_between_topologies(facts, findings);
  // If both meshes are known there is nothing left to warn about.
  if (findings.size() == before) add_different_topology(facts, findings);
}

}  // namespace

const Rule kTopologyLocked = {
    .id = "topology-locked",
    .depth = Depth::kMetadata,
    .title = "Stacked experts are in the order of another topology",
    .teaches =
        "Experts of all expert-parallel ranks are stacked along one dimension, and FSDP cuts the "
        "same dimension: the row order then depends on which of the two is applied first, and on "
        "their sizes. A loader that expects a different order finds the right shape and loads the "
        "wrong rows without an error. The spec says which order the model expects; the repair "
        "permutes blocks and loses nothing.",
    .lesson = {.drawing = R"(
  experts A and B (expert parallel 2), each cut in two by FSDP

  expected by the spec    │ A0 │ A1 │ B0 │ B1 │   expert first
  saved                   │ A0 │ B0 │ A1 │ B1 │   FSDP first

  the same shape: another topology loads B0 as the second half of A
)",
               .remedy =
                   "Load with the topology of the save, or let `shardwright repair --spec ...` "
                   "permute the blocks into the order of the spec: lossless. If it was saved on a "
                   "mesh that differs from the spec's, give that mesh with --mesh.",
               .link = "https://github.com/ISEEKYAN/Megatron-LM/pull/61"},
    .run = find_locked_topologies,
};

}  // namespace shw
