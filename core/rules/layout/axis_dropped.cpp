// The saver's mesh lacked one axis (ISEEKYAN/Megatron-LM #61, TransformerEngine #2713). Ranks that
// differ only on that axis published the same boxes, deduplication kept one of each, and the tensor
// is shorter by the size of the axis.
#include "core/facts/layout/dropped_axes.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/layout/derived_layout.h"
#include "core/facts/layout/spec_layout.h"
#include "core/facts/states/per_rank_masters.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

using AxisGroup = std::vector<const DroppedAxis*>;

const MeshAxis& axis_of(const DroppedAxis& dropped) {
  return dropped.entry->mesh->axes[dropped.axis];
}

// "mesh axis ep (2)", or "mesh axes ep (2) and etp (2)".
std::string axes_text(const DroppedAxis& dropped) {
  auto one = [&](std::size_t axis) {
    return fmt::format("{} ({})", dropped.entry->mesh->axes[axis].name,
                       dropped.entry->mesh->axes[axis].size);
  };
  std::string text = (dropped.others.empty() ? "mesh axis " : "mesh axes ") + one(dropped.axis);
  for (std::size_t other : dropped.others) text += " and " + one(other);
  return text;
}

// The tensors of one finding, those restored from retained chunks, and whole moments that are reset
// because others are lost.
struct PlacedGroup {
  AxisGroup all;
  std::vector<PartlyLost> parts;
  std::vector<std::string> given_up;
};

// Places retained chunks. The common rows of a parameter's moments are computed across findings,
// because moments may lack different axes.
void place_retained_chunks(const Checkpoint& c, const std::vector<DifferentOrder>& orders,
                           const std::set<TensorId>& restored, std::vector<PlacedGroup>& groups) {
  std::vector<PartlyLost> parts;
  std::vector<std::size_t> moments, group_of;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const DroppedAxis* dropped : groups[g].all) {
      if (restored.contains(dropped->tensor)) continue;
      auto path = parse_state_fqn(c.fqn(dropped->tensor));
      if (path && role_of_kind(path->kind) == StateRole::kMoment) moments.push_back(parts.size());
      parts.push_back({dropped->tensor, dropped->entry->shape, dropped->retained_chunks, {}});
      group_of.push_back(g);
    }
  }
  std::vector<std::string> given_up = keep_common_moments(c, orders, moments, parts);
  // Whole moments are reported with the first finding about moments.
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::size_t g = i < group_of.size() ? group_of[i] : group_of[moments.front()];
    if (i >= group_of.size()) groups[g].given_up.push_back(given_up[i - group_of.size()]);
    groups[g].parts.push_back(std::move(parts[i]));
  }
}

Finding describe_dropped(const Checkpoint& c, const AxisGroup& group) {
  const DroppedAxis& example = *group.front();
  const MeshAxis& axis = axis_of(example);
  Finding finding{.rule = "axis-dropped"};
  finding.link = is_expert(*example.entry) ? "ISEEKYAN/Megatron-LM #61" : "TransformerEngine #2713";
  for (const DroppedAxis* dropped : group) finding.subjects.emplace_back(c.fqn(dropped->tensor));
  finding.cause = fmt::format(
      "The save left out the {}: ranks that differ only in {} wrote the same boxes, one copy of "
      "each was kept, and {} is {} where the model expects {}.",
      axes_text(example), example.others.empty() ? "it" : "them", finding.subjects.front(),
      to_text(c.shape(example.tensor)), to_text(example.entry->shape));
  finding.evidence = {{"axis", axis.name},
                      {"size_of_the_axis", axis.size},
                      {"mesh", to_text(*example.entry->mesh)},
                      {"placements", to_text(example.entry->placements)},
                      {"saved_shape", copy_of(c.shape(example.tensor))},
                      {"expected_shape", example.entry->shape},
                      {"factor", example.factor}};
  std::vector<std::string> writers;
  for (std::size_t i = 0; i < example.coordinates.size() && i < 16; ++i) {
    ChunkId chunk = i < example.retained_chunks.size()
                        ? example.retained_chunks[i].chunk
                        : c.chunks(example.tensor)[static_cast<std::uint32_t>(i)];
    writers.push_back(fmt::format("{} by rank {}, {} {}", to_text(box_of(c, chunk)),
                                  c.writer(chunk).value_or(0), axis.name, example.coordinates[i]));
  }
  if (!writers.empty()) finding.evidence.emplace_back("survivors_of_the_first", writers);
  return finding;
}

using Restored = std::map<TensorId, RankFileRestore>;

// Adds what optimizer files per rank restore completely.
void add_restored_from_rank_files(Finding& finding, const AxisGroup& group,
                                  const Restored& restored) {
  std::int64_t compared = 0, pieces = 0;
  std::vector<std::string> from;
  for (const DroppedAxis* dropped : group) {
    auto found = restored.find(dropped->tensor);
    if (found == restored.end()) continue;
    compared += found->second.compared;
    pieces += static_cast<std::int64_t>(found->second.pieces.size());
    if (from.size() < 16)
      from.push_back(found->second.master + " in " + found->second.pieces.front().file + " and " +
                     plural(found->second.pieces.size() - 1, "file") + " more");
    finding.diagnoses.emplace_back(
        RestoredFromRankFiles{dropped->tensor, dropped->entry->shape, found->second.pieces});
  }
  if (pieces == 0) return;
  finding.evidence.emplace_back("restored_from_per_rank_files", from);
  finding.evidence.emplace_back("pieces_from_there", pieces);
  finding.evidence.emplace_back("survivor_elements_equal_to_masters", compared);
}

void add_placed_axes(const Checkpoint& c, PlacedGroup group, const Restored& restored,
                     std::vector<Finding>& findings) {
  Finding finding = describe_dropped(c, group.all);
  add_restored_from_rank_files(finding, group.all, restored);
  std::vector<PartlyLost>& parts = group.parts;
  LostCount loss = loss_of(parts);
  std::string text;
  if (!finding.diagnoses.empty())
    text = "Take the parts of " + plural(finding.diagnoses.size(), "tensor") +
           " from the masters that every rank wrote next to the checkpoint, cast to the dtype of "
           "the model" +
           (parts.empty() ? ": nothing is lost." : ". ");
  if (!parts.empty()) {
    finding.evidence.emplace_back("total_kept_elements", loss.kept);
    finding.evidence.emplace_back("total_lost_elements", loss.lost);
    if (!group.given_up.empty())
      finding.evidence.emplace_back("whole_moments_reset", capped(group.given_up));
    text += fmt::format(
        "Put each saved chunk where its rank is on the mesh and mask the rest: {} elements kept, "
        "{} lost.",
        loss.kept, loss.lost);
  }
  finding.remedy = Remedy{"retile", parts.empty(), text};
  for (PartlyLost& part : parts) finding.diagnoses.emplace_back(std::move(part));
  findings.push_back(std::move(finding));
}

void add_unplaced_axes(const Checkpoint& c, const AxisGroup& group,
                       std::vector<Finding>& findings) {
  Finding finding = describe_dropped(c, group);
  finding.evidence.emplace_back("undecided", group.front()->why_not);
  findings.push_back(std::move(finding));
}

void add_by_spec(const CheckInput& input, const std::vector<DifferentOrder>& orders,
                 std::vector<Finding>& findings) {
  std::vector<DroppedAxis> all = dropped_axes(input);
  if (all.empty()) return;
  Restored restored;
  auto masters = input.headers.empty() ? std::nullopt : read_per_rank_masters(input.checkpoint);
  std::int64_t comparisons = 4096;  // of 4,096 elements each
  for (DroppedAxis& dropped : all) {
    auto found = masters ? restore_from_rank_files(input, *masters, dropped) : std::nullopt;
    if (found) restored.emplace(dropped.tensor, std::move(*found));
    auto contradiction = masters && !found
                             ? contradicted_by_masters(input, *masters, dropped, comparisons)
                             : std::nullopt;
    if (!contradiction) continue;
    dropped.placed = false;
    dropped.why_not = *contradiction;
  }
  // One finding per axis, and another for tensors that cannot be placed.
  std::map<std::pair<std::string, bool>, AxisGroup> groups;
  for (const DroppedAxis& dropped : all) {
    groups[{axes_text(dropped), !dropped.placed}].push_back(&dropped);
  }
  std::set<TensorId> whole_again;
  for (const auto& [tensor, pieces] : restored) whole_again.insert(tensor);
  std::vector<PlacedGroup> placed;
  for (const auto& [key, group] : groups) {
    if (!key.second) placed.push_back({group, {}, {}});
  }
  place_retained_chunks(input.checkpoint, orders, whole_again, placed);
  auto next = placed.begin();
  for (const auto& [key, group] : groups) {
    if (key.second)
      add_unplaced_axes(input.checkpoint, group, findings);
    else
      add_placed_axes(input.checkpoint, std::move(*next++), restored, findings);
  }
}

// Reports tensors without a spec, using layouts derived from neighbouring tensors
// (derived_layout.h).
void report_dropped_by_derived_layouts(const Facts& facts, std::vector<Finding>& findings) {
  const DerivedLayouts& layouts = facts.derived_layouts;
  for (const DerivedLayout& layout : layouts.decided) {
    std::size_t before = findings.size();
    add_by_spec(with_layout(facts, layout), {}, findings);
    for (std::size_t i = before; i < findings.size(); ++i) {
      findings[i].link = layout.link;
      findings[i].evidence.emplace_back("expected_because", layout.constraint);
      findings[i].evidence.emplace_back("confidence", layout.confidence);
    }
  }
  for (const UndecidedAxis& told : layouts.undecided) {
    Finding finding{
        .rule = "axis-dropped", .severity = Severity::kWarning, .subjects = told.subjects};
    finding.cause = told.cause;
    finding.evidence = told.evidence;
    finding.link = told.link;
    findings.push_back(std::move(finding));
  }
}

void find_dropped_axes(const Facts& facts, std::vector<Finding>& findings) {
  report_dropped_by_derived_layouts(facts, findings);
  add_by_spec(facts, facts.other_orders, findings);
}

}  // namespace

const Rule kAxisDropped = {
    .id = "axis-dropped",
    .depth = Depth::kMetadata,
    .title = "The save left out a mesh axis, so one rank's copy of each box was kept",
    .teaches =
        "The save described a tensor by a mesh without one of its axes (expert or tensor "
        "parallel). Ranks that differ only on that axis record equal boxes, one copy of each is "
        "kept, and the tensor is too short by the size of the axis. The rank that wrote each chunk "
        "shows where it belongs: the repair puts chunks there and masks the rest, or restores "
        "everything if per-rank optimizer files hold the masters. Without a spec, four signs show "
        "it: a router that selects among more experts than were saved; a second matrix that is "
        "sharded into as many parts as the first is too short by; a tensor-parallel axis named "
        "with --mesh that no tensor uses; optimizer states shorter than their parameters. If FSDP "
        "shards stacked experts along the same rows, their order depends on the loader: only a "
        "spec decides that.",
    .lesson = {.drawing = R"(
  two experts of 2 rows, one on each of 2 expert-parallel ranks

  expected [4]     │ A0 │ A1 │ B0 │ B1 │
  rank                ep 0   │   ep 1

  saved    [2]     │ A0 │ A1 │            both ranks wrote offset 0;
                   │ B0 │ B1 │  dropped   one box of two is kept
)",
               .remedy = "`shardwright repair`, with --spec or --mesh, puts the saved chunks in "
                         "place and masks the rest. With optimizer_rank_R.pt files next to the "
                         "checkpoint it restores everything.",
               .link = "https://github.com/ISEEKYAN/Megatron-LM/pull/61"},
    .cause_of = ExplainedSymptoms::kTiles,
    .makes_shapes_doubtful = true,
    .run = find_dropped_axes,
};

}  // namespace shw
