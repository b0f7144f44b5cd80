// Chunks of one tensor that come from several coordinates of a mesh axis. If the saver dropped that
// axis, load balancing decided whose chunk was kept, so the tensor mixes several experts or slices.
// Without a dropped axis the same picture is healthy: replicas share the writing.
//
// Without a spec the axis along which a matrix should be split is unknown. One picture remains that
// a healthy saver hardly makes: neighbouring ranks (0 and 1, 2 and 3) offered the same box of every
// matrix that tensor parallelism splits by its name, no tensor is split by the axis that
// distinguishes those ranks, and boxes of both were kept. HSDP differs: its replicas are far apart
// (0 and 2). FSDP over dp alone, on a mesh whose inner axis is cp, looks the same and is correct.
// So this is only a hint (confidence 0.5) until a mesh is given or, for experts, the router counts
// more experts than exist. No hint if:
// - every tensor is one chunk: that is data parallelism as well as tensor parallelism;
// - the kept boxes fit far replicas too, or all come from one side (lowest-rank deduplication);
// - another tensor is split by the inner ranks: the saver knew the axis, and replicated by choice.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/facts/facts.h"
#include "core/facts/layout/derived_layout.h"
#include "core/facts/layout/dropped_axes.h"
#include "core/facts/layout/router_constraint.h"
#include "core/facts/layout/spec_layout.h"
#include "core/facts/names/parallel_names.h"
#include "core/facts/states/optimizer_states.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

void report_mosaic_of_axis(const CheckInput& input, std::vector<Finding>& findings) {
  const Checkpoint& c = input.checkpoint;
  std::vector<std::string> mixed, lines;
  std::set<std::int64_t> across;
  std::string axis;
  for (const DroppedAxis& dropped : dropped_axes(input)) {
    std::set<std::int64_t> own(dropped.coordinates.begin(), dropped.coordinates.end());
    if (own.empty()) continue;
    across.insert(own.begin(), own.end());
    axis = dropped.entry->mesh->axes[dropped.axis].name;
    std::string line = std::string(c.fqn(dropped.tensor)) + ": " + axis;
    for (std::int64_t coordinate : own) line += fmt::format(" {}", coordinate);
    if (lines.size() < 16) lines.push_back(std::move(line));
    if (own.size() > 1) mixed.emplace_back(c.fqn(dropped.tensor));
  }
  if (across.size() < 2) return;
  Finding finding{.rule = "writer-mosaic", .severity = Severity::kWarning};
  bool inside = !mixed.empty();
  if (inside) {
    finding.subjects = std::move(mixed);
    finding.cause = "Chunks of one tensor were written by ranks of several " + axis +
                    " coordinates: the saved tensor is a mixture of different parts of the model.";
  } else {
    for (const DroppedAxis& dropped : dropped_axes(input))
      finding.subjects.emplace_back(c.fqn(dropped.tensor));
    finding.cause = "Different tensors survived from different " + axis +
                    " coordinates: together they are not the model of any rank.";
  }
  finding.evidence = {{"axis", axis}, {"coordinates_that_survived", lines}};
  findings.push_back(std::move(finding));
}

constexpr double kConfidence = 0.5;

// The non-empty chunks of one tensor along the only split dimension, and their writers.
struct Boxes {
  std::vector<std::int64_t> writers;  // in the order of their offsets
};
std::optional<Boxes> boxes_of_writers(const Checkpoint& c, TensorId tensor) {
  std::map<std::int64_t, std::int64_t> by_offset;
  std::optional<std::size_t> dim;
  for (ChunkId chunk : c.chunks(tensor)) {
    ExtentsView offsets = c.offsets(chunk), sizes = c.sizes(chunk);
    auto writer = c.writer(chunk);
    if (volume(sizes) == 0) continue;
    if (!writer || offsets.size() != c.shape(tensor).size()) return std::nullopt;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == c.shape(tensor)[d]) continue;
      if (dim && *dim != d) return std::nullopt;
      dim = d;
    }
    if (!dim || !by_offset.emplace(offsets[*dim], *writer).second) return std::nullopt;
  }
  if (by_offset.size() < 2) return std::nullopt;
  Boxes out;
  for (const auto& [offset, writer] : by_offset) out.writers.push_back(writer);
  return out;
}

// Ranks that offered the same boxes of the examined tensors.
struct WriterGroups {
  std::int64_t boxes = 0, replicas = 0;
  bool near = true;                    // box i by one of the ranks i * replicas and following
  bool far = true;                     // by one of the ranks i, i + boxes, ...
  std::set<std::int64_t> coordinates;  // among the near ones
  std::vector<std::string> mixed;      // tensors with boxes from several of these coordinates
  std::vector<std::string> lines;
};

// The writers' pattern; nullopt if one of the tensors is not split evenly among groups of ranks.
std::optional<WriterGroups> writer_groups_of(const Facts& facts,
                                             const std::vector<TensorId>& tensors) {
  const Checkpoint& c = facts.checkpoint;
  WriterGroups out;
  std::int64_t ranks = facts.ranks;
  for (TensorId tensor : tensors) {
    auto found = facts.tilings[index_of(tensor)].tiling == Tiling::kExact
                     ? boxes_of_writers(c, tensor)
                     : std::nullopt;
    auto boxes = found ? static_cast<std::int64_t>(found->writers.size()) : 0;
    if (boxes == 0 || (out.boxes != 0 && boxes != out.boxes)) return std::nullopt;
    if (ranks % boxes != 0 || ranks / boxes < 2) return std::nullopt;
    out.boxes = boxes;
    out.replicas = ranks / boxes;
    std::set<std::int64_t> own;
    std::string line = std::string(c.fqn(tensor)) + ": ranks";
    for (std::int64_t i = 0; i < boxes; ++i) {
      std::int64_t writer = found->writers[static_cast<std::size_t>(i)];
      out.near = out.near && writer / out.replicas == i;
      out.far = out.far && writer % boxes == i;
      own.insert(writer % out.replicas);
      if (i < 16) line += fmt::format(" {}", writer);
    }
    if (own.size() > 1) out.mixed.emplace_back(c.fqn(tensor));
    if (out.lines.size() < 16) out.lines.push_back(std::move(line));
    out.coordinates.merge(own);
  }
  if (out.boxes == 0 || !out.near || out.far || out.coordinates.size() < 2) return std::nullopt;
  return out;
}

// True if a tensor has more parts than boxes, so that the axis of the replicas splits it.
bool has_tensor_with_more_parts(const Facts& facts, std::int64_t boxes) {
  const Checkpoint& c = facts.checkpoint;
  for (TensorId tensor : each_tensor(facts)) {
    std::int64_t filled = 0;
    for (ChunkId chunk : c.chunks(tensor)) filled += volume(c.sizes(chunk)) != 0 ? 1 : 0;
    if (filled > boxes) return true;
  }
  return false;
}

// True unless the user's mesh lacks an axis of that kind and size.
template <class IsAxis>
bool is_possible(const Facts& facts, const WriterGroups& found, IsAxis is_axis) {
  if (facts.mesh == nullptr) return true;
  return std::any_of(facts.mesh->axes.begin(), facts.mesh->axes.end(), [&](const MeshAxis& axis) {
    return is_axis(axis.name) && axis.size == found.replicas;
  });
}

std::string hint_for_copies_or_parts(const Facts& facts, const WriterGroups& found,
                                     const char* axis) {
  if (facts.mesh != nullptr)
    return "which rows these ranks held, and in which order, can only be decided with --spec";
  return fmt::format(
      "whether these ranks hold copies or different shards: give the mesh (--mesh dp={},{}={}, if "
      "that is right) or a spec (--spec)",
      found.boxes, axis, found.replicas);
}

void report_writer_groups(const Facts& facts, const std::vector<TensorId>& tensors,
                          const WriterGroups& found, const std::string& which,
                          const std::string& axis, const std::string& undecided, Severity severity,
                          std::vector<Finding>& findings) {
  Finding finding{.rule = "writer-mosaic", .severity = severity, .subjects = found.mixed};
  if (finding.subjects.empty()) {
    for (TensorId tensor : tensors) finding.subjects.emplace_back(facts.checkpoint.fqn(tensor));
  }
  finding.cause = fmt::format(
      "{} are in {} boxes, and {} neighbouring ranks offered each box. If those were {} ranks, "
      "every box was kept from one of them, and the others' data is missing. The saved tensor is "
      "then a mixture of several ranks.",
      which, found.boxes, found.replicas, axis);
  finding.evidence = {{"boxes", found.boxes},
                      {"ranks_that_offered_each", found.replicas},
                      {"writers_in_box_order", found.lines},
                      {"confidence", kConfidence},
                      {"undecided", undecided}};
  findings.push_back(std::move(finding));
}

void report_mosaic_matrices(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::vector<TensorId> tensors;
  bool columns = false, rows = false;
  for (TensorId tensor : each_tensor(facts)) {
    auto name = parallel_name(c.fqn(tensor));
    if (!name || name->is_bias() || parse_state_fqn(c.fqn(tensor))) continue;
    if (c.shape(tensor).size() != 2) continue;
    (name->kind == ParallelKind::kColumn ? columns : rows) = true;
    tensors.push_back(tensor);
  }
  if (!columns || !rows) return;
  auto found = writer_groups_of(facts, tensors);
  if (found && is_possible(facts, *found, is_tensor_axis) &&
      !has_tensor_with_more_parts(facts, found->boxes))
    report_writer_groups(facts, tensors, *found, "The matrices that tensor parallelism cuts",
                         "tensor-parallel", hint_for_copies_or_parts(facts, *found, "tp"),
                         facts.mesh != nullptr ? Severity::kWarning : Severity::kInfo, findings);
}

void add_experts(const Facts& facts, std::vector<Finding>& findings) {
  for (const UncountedExperts& layer : uncounted_experts(facts)) {
    auto found = writer_groups_of(facts, layer.tensors);
    if (found && is_possible(facts, *found, is_expert_axis) && layer.routed % layer.keys == 0 &&
        layer.routed / layer.keys == found->replicas)
      report_writer_groups(facts, layer.tensors, *found,
                           fmt::format("The experts ({} keys, the router chooses among {})",
                                       layer.keys, layer.routed),
                           "expert-parallel", hint_for_copies_or_parts(facts, *found, "ep"),
                           Severity::kWarning, findings);
  }
}

void find_writer_mosaics(const Facts& facts, std::vector<Finding>& findings) {
  report_mosaic_of_axis(facts, findings);
  const DerivedLayouts& layouts = facts.derived_layouts;
  for (const DerivedLayout& layout : layouts.decided)
    report_mosaic_of_axis(with_layout(facts, layout), findings);
  const bool is_said = facts.spec != nullptr && facts.untrusted_in_reference.empty();
  if (is_said || !layouts.decided.empty() || !layouts.undecided.empty()) return;
  report_mosaic_matrices(facts, findings);
  add_experts(facts, findings);
}

}  // namespace

const Rule kWriterMosaic = {
    .id = "writer-mosaic",
    .depth = Depth::kMetadata,
    .title = "Chunks of one tensor come from different slices of the model",
    .teaches =
        "If the save left out a mesh axis, load balancing decides per chunk which rank's bytes are "
        "kept. A tensor whose chunks come from several coordinates of that axis is a mixture of "
        "experts, or of tensor-parallel shards, that no rank ever had. The finding next to it "
        "(axis-dropped) says where each chunk belongs. Without that finding this is only a hint: "
        "neighbouring ranks offered the same boxes of all matrices that tensor parallelism shards. "
        "The mesh (--mesh) or a spec decides whether they held copies or different shards.",
    .lesson =
        {.drawing = R"(
  rows held by tp 0     │ 0 1 │ 2 3 │
  rows held by tp 1     │ 4 5 │ 6 7 │

  saved                 │ 4 5 │ 2 3 │   a tensor that no rank ever had
  written by              tp 1  tp 0
)",
         .remedy =
             "If axis-dropped is also reported, its repair puts each chunk back at its rank's "
             "position. Otherwise run `shardwright check --mesh dp=..,tp=..` to find out.",
         .link = "https://github.com/NVIDIA/TransformerEngine/pull/2713"},
    .hint = {.what = "whether other ranks' shards are lost",
             .needs = "--mesh or --spec",
             .remains_open_with_spec = true,
             .remains_open_at_data = true},
    .symptom_in = SymptomIn::kTiles,
    .repaired_by = RepairedBy::kTiles,
    .makes_shapes_doubtful = true,
    .run = find_writer_mosaics,
};

}  // namespace shw
