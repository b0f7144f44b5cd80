#include "core/facts/layout/sibling_constraints.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/base/checked.h"
#include "core/facts/layout/dropped_axes.h"
#include "core/facts/layout/spec_layout.h"
#include "core/facts/names/parallel_names.h"
#include "core/facts/states/optimizer_states.h"
#include "core/mesh/infer.h"

namespace shw {
namespace {

constexpr double kSiblingConfidence = 0.95;
constexpr const char* kSiblingLink = "TransformerEngine #2713";
constexpr std::size_t kLooked = 64;  // tensors analysed, among thousands of equal ones
constexpr std::int64_t kRows = std::int64_t{1} << 46;  // more than any matrix has
constexpr std::int64_t kRanks = 1 << 14;               // largest mesh searched for placements

struct SiblingMatrix {
  TensorId tensor{};
  ParallelName name;
};

// Weights and biases with known names that the spec does not describe.
std::vector<SiblingMatrix> matrices_of(const CheckInput& input) {
  const Checkpoint& c = input.checkpoint;
  std::vector<SiblingMatrix> out;
  for (TensorId tensor : each_tensor(input)) {
    std::string_view fqn = c.fqn(tensor);
    if (input.spec != nullptr && input.spec->find(fqn) != nullptr) continue;
    auto name = parallel_name(fqn);
    if (!name || parse_state_fqn(fqn)) continue;
    if (c.shape(tensor).size() != (name->is_bias() ? 1U : 2U)) continue;
    out.push_back({tensor, *name});
  }
  return out;
}

std::size_t count_non_empty_chunks(const Checkpoint& c, TensorId tensor) {
  std::size_t count = 0;
  for (ChunkId chunk : c.chunks(tensor)) {
    if (volume(c.sizes(chunk)) != 0) ++count;
  }
  return count;
}

// Number of equal parts along `dim`; 1 if not split or uneven.
std::int64_t equal_parts_along_dim(const Checkpoint& c, TensorId tensor, std::size_t dim) {
  std::set<std::int64_t> starts;
  for (ChunkId chunk : c.chunks(tensor)) {
    if (volume(c.sizes(chunk)) != 0) starts.insert(c.offsets(chunk)[dim]);
  }
  auto parts = static_cast<std::int64_t>(starts.size());
  bool even = parts > 1 && c.shape(tensor)[dim] % parts == 0;
  std::int64_t step = even ? c.shape(tensor)[dim] / parts : 1;
  even = even && std::all_of(starts.begin(), starts.end(),
                             [&](std::int64_t start) { return start % step == 0; });
  return even ? parts : 1;
}

struct Pair {
  std::string_view first, second;
  bool fused = false;  // may hold two stacked matrices
};
// Pairs of matrices of one layer whose inner sizes agree. q_proj and o_proj are not listed: some
// models use another head size for values.
constexpr std::array<Pair, 8> kPairs{{{"fc1", "fc2", true},
                                      {"linear_fc1", "linear_fc2", true},
                                      {"gate_proj", "down_proj", false},
                                      {"up_proj", "down_proj", false},
                                      {"gate_up_proj", "down_proj", true},
                                      {"w1", "w2", false},
                                      {"w3", "w2", false},
                                      {"dense_h_to_4h", "dense_4h_to_h", true}}};

// Number of ranks whose rows are missing from the first matrix: T if it has 1/T of the rows that
// the second matrix's columns require, the second is split into T along its columns, and the first
// has fewer chunks. 1 if not.
std::int64_t missing_split_factor(const Checkpoint& c, const SiblingMatrix& first,
                                  const SiblingMatrix& second, bool fused) {
  ExtentsView a = c.shape(first.tensor), b = c.shape(second.tensor);
  bool two = fused && !first.name.is_half();
  bool comparable = a[1] == b[0] && a[0] > 0 && a[0] < b[1] && b[1] <= kRows;
  if (!comparable ||
      count_non_empty_chunks(c, first.tensor) >= count_non_empty_chunks(c, second.tensor))
    return 1;
  std::int64_t parts = equal_parts_along_dim(c, second.tensor, 1);
  auto whole = checked_mul(a[0], parts);
  bool fits = whole && (*whole == b[1] || (two && *whole == 2 * b[1]));
  return parts > 1 && fits ? parts : 1;
}

struct SuspectTensors {
  std::vector<TensorId> tensors;
  std::int64_t factor = 1;
  std::string constraint;
};

// The output layer has as many rows as the embedding.
void add_output_layer(const CheckInput& input, SuspectTensors& out) {
  const Checkpoint& c = input.checkpoint;
  for (TensorId head : each_tensor(input)) {
    std::string_view fqn = c.fqn(head);
    if (parse_state_fqn(fqn) || c.shape(head).size() != 2) continue;
    if (!fqn.ends_with("output_layer.weight") && !fqn.ends_with("lm_head.weight")) continue;
    for (TensorId words : each_tensor(input)) {
      if (c.fqn(words).find("embed") == std::string_view::npos || parse_state_fqn(c.fqn(words)))
        continue;
      ExtentsView wide = c.shape(words);
      if (wide.size() == 2 && wide[1] == c.shape(head)[1] &&
          checked_mul(c.shape(head)[0], out.factor) == wide[0])
        out.tensors.push_back(head);
    }
  }
}

SuspectTensors suspects_with_intact_siblings(const CheckInput& input,
                                             const std::vector<SiblingMatrix>& all) {
  const Checkpoint& c = input.checkpoint;
  std::map<std::pair<std::string_view, std::string_view>, std::vector<const SiblingMatrix*>>
      by_name;
  for (const SiblingMatrix& matrix : all)
    by_name[{matrix.name.block, matrix.name.matrix}].push_back(&matrix);
  SuspectTensors out;
  std::set<TensorId> found;
  for (const SiblingMatrix& first : each_of(all, input)) {
    for (const Pair& pair : kPairs) {
      if (first.name.matrix != pair.first || first.name.is_bias()) continue;
      auto second = by_name.find({first.name.block, pair.second});
      if (second == by_name.end()) continue;
      for (const SiblingMatrix* other : second->second) {
        if (other->name.part != "weight") continue;
        std::int64_t factor = missing_split_factor(c, first, *other, pair.fused);
        if (factor == 1 || (out.factor != 1 && out.factor != factor)) continue;
        if (out.tensors.empty()) {
          out.constraint =
              fmt::format("{} has {} rows and {}, cut into {} along the other side, {} columns",
                          c.fqn(first.tensor), c.shape(first.tensor)[0], c.fqn(other->tensor),
                          factor, c.shape(other->tensor)[1]);
        }
        out.factor = factor;
        if (found.insert(first.tensor).second) out.tensors.push_back(first.tensor);
        // A bias has one element per row of its weight.
        for (const SiblingMatrix* bias : by_name[{first.name.block, first.name.matrix}]) {
          bool short_too =
              bias->name.is_bias() && c.shape(bias->tensor)[0] == c.shape(first.tensor)[0];
          if (short_too && found.insert(bias->tensor).second) out.tensors.push_back(bias->tensor);
        }
      }
    }
  }
  if (!out.tensors.empty()) add_output_layer(input, out);
  return out;
}

std::optional<std::size_t> tensor_axis(const Mesh& mesh) {
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    if (is_tensor_axis(mesh.axes[i].name) && mesh.axes[i].size > 1) return i;
  }
  return std::nullopt;
}

// True if a tensor is split by the axis, or may be because its layout is unexplained.
bool may_be_split_by_axis(const CheckInput& input, const Mesh& mesh, std::size_t axis) {
  const Checkpoint& c = input.checkpoint;
  std::size_t looked = 0;
  for (TensorId tensor : each_tensor(input)) {
    if (looked == kLooked) break;
    if (count_non_empty_chunks(c, tensor) < 2) continue;
    ++looked;
    auto placements = infer_placements(c, mesh, tensor);
    if (!placements || (*placements)[axis].kind != Placement::Kind::kReplicate) return true;
  }
  return looked == 0;
}

// Suspects all matrices if the user's mesh has an axis that splits no tensor.
SuspectTensors suspects_by_unused_mesh_axis(const CheckInput& input,
                                            const std::vector<SiblingMatrix>& all) {
  SuspectTensors out;
  auto axis = tensor_axis(*input.mesh);
  if (!axis || may_be_split_by_axis(input, *input.mesh, *axis)) return out;
  bool columns = false, rows = false;
  for (const SiblingMatrix& matrix : all) {
    bool is_row = matrix.name.kind == ParallelKind::kRow;
    if (is_row && matrix.name.is_bias()) continue;
    // Gives up: with a single chunk the repaired tensor would look unchanged.
    if (count_non_empty_chunks(input.checkpoint, matrix.tensor) < 2) return {};
    columns = columns || !is_row;
    rows = rows || is_row;
    out.tensors.push_back(matrix.tensor);
  }
  if (!columns || !rows) return {};
  out.factor = input.mesh->axes[*axis].size;
  out.constraint = "no tensor is sharded along the axis " + input.mesh->axes[*axis].name + " of " +
                   to_text(*input.mesh);
  return out;
}

// Adds the missing tensor-parallel split to the tensor's layout, as the first split, so that FSDP's
// split of the same dimension is strided.
std::optional<SpecEntry> entry_of(const CheckInput& input, TensorId tensor, std::size_t axis) {
  const Checkpoint& c = input.checkpoint;
  const Mesh& mesh = *input.mesh;
  auto name = parallel_name(c.fqn(tensor));
  std::int64_t dim = name && name->kind == ParallelKind::kRow ? 1 : 0;
  SpecEntry entry;
  entry.shape = copy_of(c.shape(tensor));
  auto d = static_cast<std::size_t>(dim);
  if (entry.shape[d] > kRows) return std::nullopt;
  entry.shape[d] *= mesh.axes[axis].size;
  entry.mesh = mesh;
  entry.placements.assign(mesh.axes.size(), Placement{});
  entry.role = dim == 1 ? "row" : "column";
  if (count_non_empty_chunks(c, tensor) > 1) {
    auto placements = infer_placements(c, mesh, tensor);
    if (!placements) {
      // A flat bucket is split anywhere, by the only other axis.
      placements.emplace(mesh.axes.size());
      std::size_t others = 0;
      for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
        if (i == axis || mesh.axes[i].size < 2) continue;
        (*placements)[i] = {Placement::Kind::kShard, 0, 1};
        ++others;
      }
      if (others != 1) return std::nullopt;
    }
    entry.placements = std::move(*placements);
  }
  for (std::size_t i = 0; i < entry.placements.size(); ++i) {
    Placement& placement = entry.placements[i];
    if (i == axis) {
      if (placement.kind != Placement::Kind::kReplicate) return std::nullopt;
      placement = {Placement::Kind::kShard, dim, 1};
    } else if (placement.kind == Placement::Kind::kShard && placement.dim == dim) {
      // Only an axis before the tensor-parallel one can be strided.
      if (i > axis) return std::nullopt;
      placement = {Placement::Kind::kStridedShard, dim, mesh.axes[axis].size};
    }
  }
  return entry;
}

std::optional<DerivedLayout> layout_of_suspects(const CheckInput& input,
                                                const SuspectTensors& suspects, std::size_t axis) {
  const Checkpoint& c = input.checkpoint;
  DerivedLayout out;
  for (TensorId tensor : suspects.tensors) {
    auto entry = entry_of(input, tensor, axis);
    if (!entry) return std::nullopt;
    out.spec.entries.emplace(c.fqn(tensor), std::move(*entry));
  }
  // States of a parameter have the same damage.
  std::set<TensorId> parameters(suspects.tensors.begin(), suspects.tensors.end());
  for (const OptimizerState& state : each_state(input)) {
    if (!state.parameter || !parameters.contains(*state.parameter) || !state.is_parameter_certain)
      continue;
    if (!same(c.shape(state.state), c.shape(*state.parameter))) continue;
    auto entry = out.spec.entries.at(std::string(c.fqn(*state.parameter)));
    out.spec.entries.emplace(c.fqn(state.state), std::move(entry));
  }
  out.constraint = suspects.constraint;
  out.spec.source = out.constraint;
  out.confidence = kSiblingConfidence;
  out.link = kSiblingLink;
  return out;
}

bool can_place_all_by_sibling_layout(const CheckInput& input, const DerivedLayout& layout) {
  CheckInput derived = with_layout(input, layout);
  std::vector<DroppedAxis> dropped = dropped_axes(derived);
  return dropped.size() == layout.spec.entries.size() &&
         std::all_of(dropped.begin(), dropped.end(), [](const DroppedAxis& item) {
           return item.placed && item.others.empty() &&
                  is_tensor_axis(item.entry->mesh->axes[item.axis].name);
         });
}

UndecidedAxis undecided_by_siblings(const CheckInput& input, const SuspectTensors& suspects) {
  const Checkpoint& c = input.checkpoint;
  UndecidedAxis told;
  for (TensorId tensor : suspects.tensors) told.subjects.emplace_back(c.fqn(tensor));
  told.cause = fmt::format(
      "{}: the save probably left the tensor-parallel axis out of the first, and kept the "
      "shard of only one of {} ranks.",
      suspects.constraint, suspects.factor);
  told.evidence = {{"factor", suspects.factor}, {"confidence", kSiblingConfidence}};
  if (input.mesh == nullptr) {
    auto guesses = infer_meshes(c, {}, nullptr, input.progress);
    if (!guesses.empty()) told.evidence.emplace_back("likely_mesh", to_text(guesses.front().mesh));
  }
  told.evidence.emplace_back("undecided",
                             std::string("to know which rank holds which shard, give the mesh "
                                         "(--mesh dp=..,tp=..) or a spec (--spec)"));
  told.link = "Megatron-LM #4423";
  return told;
}

}  // namespace

void derive_by_siblings(const CheckInput& input, DerivedLayouts& out) {
  std::vector<SiblingMatrix> all = matrices_of(input);
  if (all.empty()) return;
  SuspectTensors suspects = suspects_with_intact_siblings(input, all);
  bool by_constraint = !suspects.tensors.empty();
  bool searched = input.mesh != nullptr && input.mesh->size() <= kRanks;
  if (!by_constraint && searched) suspects = suspects_by_unused_mesh_axis(input, all);
  if (suspects.tensors.empty()) return;
  if (searched) {
    auto axis = tensor_axis(*input.mesh);
    bool same_size = axis && input.mesh->axes[*axis].size == suspects.factor;
    auto layout = same_size ? layout_of_suspects(input, suspects, *axis) : std::nullopt;
    if (layout && can_place_all_by_sibling_layout(input, *layout)) {
      out.decided.push_back(std::move(*layout));
      return;
    }
  }
  if (by_constraint) out.undecided.push_back(undecided_by_siblings(input, suspects));
}

}  // namespace shw
