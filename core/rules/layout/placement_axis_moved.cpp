#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/layout/grown_axis.h"
#include "core/facts/layout/spec_layout.h"
#include "core/facts/names/expert_family.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

using State = FamilyJudgement::State;

// A tensor with moved axes, on disk or in the spec.
struct TensorWithMovedAxis {
  TensorId tensor{};
  AxisRelation relation;
  Extents expected;
  const SpecEntry* entry = nullptr;  // null: inferred from siblings
  bool by_hidden = false;            // for inferred ones
  bool tie = false;                  // a plain transpose has these shapes too
  bool is_request_wrong = false;     // the checkpoint is right, the spec is wrong
};

struct Evidence {
  Families saved, expected;
  std::optional<HiddenSize> hidden;

  FamilyJudgement verdict_in(const Families& families, std::string_view fqn) const {
    auto name = family_name(fqn);
    auto found = name ? families.find(name->key) : families.end();
    if (found == families.end()) return {};
    return judge(found->second, hidden ? std::optional(hidden->size) : std::nullopt);
  }
};

// Number of parts of the shrunk axis in the spec; nullopt without a layout.
std::optional<std::int64_t> spec_parts_of_shrunk_axis(const SpecEntry& entry,
                                                      const AxisRelation& relation) {
  if (!entry.mesh || entry.placements.size() != entry.mesh->axes.size()) return std::nullopt;
  std::int64_t parts = 1;
  for (std::size_t i = 0; i < entry.placements.size(); ++i) {
    auto dim = sharded_dim_of(entry.placements[i], entry.shape.size());
    if (dim == relation.shrunk) parts *= entry.mesh->axes[i].size;
  }
  return parts;
}

// True if the parts equal the factor, as the save should have recorded.
bool matches_factor_of_spec(const SpecEntry& entry, const AxisRelation& relation) {
  return spec_parts_of_shrunk_axis(entry, relation) == relation.factor;
}

// True if the spec does not shard the concatenation axis: then it requests another shape, not
// another placement. A mesh of another size belongs to the loader.
bool contradicts_spec(const Facts& facts, const SpecEntry& entry, const AxisRelation& relation) {
  auto parts = spec_parts_of_shrunk_axis(entry, relation);
  if (!parts) return false;
  if (entry.mesh->size() == facts.ranks) return *parts % relation.factor != 0;
  return *parts < 2 && entry.mesh->size() > facts.ranks;
}

// True if the saved form fits: by its chunks, or by other evidence for consolidated files. Experts
// are three-dimensional; for other tensors the spec's placements must show that a shard moved, not
// a pack or reshape.
bool fits(const Checkpoint& checkpoint, const TensorWithMovedAxis& moved, bool by_family) {
  if (!is_consolidated(checkpoint, moved.tensor))
    return tiles_allow_relabel(checkpoint, moved.tensor, moved.expected, moved.relation);
  return by_family || moved.expected.size() == 3 ||
         (moved.entry != nullptr && matches_factor_of_spec(*moved.entry, moved.relation));
}

// Finds moved axes exactly, with a spec. The siblings decide whether checkpoint or spec is wrong.
std::vector<TensorWithMovedAxis> by_spec(const Facts& facts, const Evidence& evidence) {
  std::vector<TensorWithMovedAxis> found;
  if (facts.spec == nullptr) return found;
  const Checkpoint& checkpoint = facts.checkpoint;
  for (TensorId tensor : each_tensor(facts)) {
    const SpecEntry* entry = facts.spec->find(checkpoint.fqn(tensor));
    if (entry == nullptr) continue;
    auto relation = relate_axes(checkpoint.shape(tensor), entry->shape);
    if (!relation) continue;
    State saved = evidence.verdict_in(evidence.saved, checkpoint.fqn(tensor)).state;
    State wanted = evidence.verdict_in(evidence.expected, checkpoint.fqn(tensor)).state;
    bool two_models = saved == State::kHasExpectedSizes && wanted == State::kHasExpectedSizes;
    if (two_models) continue;
    TensorWithMovedAxis moved{tensor, *relation, entry->shape, entry, false, false, false};
    moved.is_request_wrong = saved == State::kHasExpectedSizes || wanted == State::kMoved;
    moved.tie = !moved.is_request_wrong && fits_plain_transpose(entry->shape, *relation) &&
                saved != State::kMoved && !matches_factor_of_spec(*entry, *relation);
    if (saved == State::kUnknown && !moved.is_request_wrong &&
        contradicts_spec(facts, *entry, *relation))
      continue;
    if (moved.is_request_wrong || fits(checkpoint, moved, saved == State::kMoved))
      found.push_back(std::move(moved));
  }
  return found;
}

// Finds moved axes without a spec: all members of the family must have moved, and chunks must
// match.
std::vector<TensorWithMovedAxis> find_moved_by_siblings(const Facts& facts,
                                                        const Evidence& evidence) {
  std::vector<TensorWithMovedAxis> found;
  const Checkpoint& checkpoint = facts.checkpoint;
  for (TensorId tensor : each_tensor(facts)) {
    ExtentsView shape = checkpoint.shape(tensor);
    if (shape.size() != 3) continue;
    std::string_view fqn = checkpoint.fqn(tensor);
    if (facts.spec != nullptr && facts.spec->find(fqn) != nullptr) continue;
    FamilyJudgement family = evidence.verdict_in(evidence.saved, fqn);
    if (family.state != State::kMoved || shape[1] % family.factor != 0) continue;
    Extents expected = {shape[0], shape[1] / family.factor, shape[2] * family.factor};
    AxisRelation relation{1, 2, family.factor};
    TensorWithMovedAxis moved{tensor, relation, std::move(expected), nullptr, family.by_hidden};
    if (fits(checkpoint, moved, true)) found.push_back(std::move(moved));
  }
  return found;
}

std::string times(std::int64_t factor) {
  return factor == 2 ? "twice" : fmt::format("{} times", factor);
}
std::string part(std::int64_t factor) {
  switch (factor) {
    case 2:
      return "half";
    case 3:
      return "a third";
    case 4:
      return "a quarter";
    default:
      return fmt::format("1/{}", factor);
  }
}

std::vector<Placement> with_shard_dim_replaced(std::vector<Placement> placements, std::size_t from,
                                               std::size_t to) {
  for (Placement& placement : placements) {
    bool shards = placement.kind == Placement::Kind::kShard ||
                  placement.kind == Placement::Kind::kStridedShard;
    if (shards && placement.dim == static_cast<std::int64_t>(from))
      placement.dim = static_cast<std::int64_t>(to);
  }
  return placements;
}

std::string quoted(const std::string& placements) {
  return placements.empty() ? "" : " (" + placements + ")";
}

struct MoveGroup {
  std::vector<TensorWithMovedAxis> tensors;
  std::vector<std::string> saved, expected, tiles;
  std::int64_t tile_count = 0;
  std::string recorded, correct, mesh;
  std::size_t deduced = 0;
  double confidence = 1.0;
};

std::string biggest_tile(const Checkpoint& checkpoint, TensorId tensor) {
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    ExtentsView sizes = checkpoint.sizes(chunk);
    if (std::find(sizes.begin(), sizes.end(), 0) == sizes.end()) return to_text(sizes);
  }
  return "[]";
}

// The recorded and the correct placements, from the first tensor whose spec has them.
void read_placements(MoveGroup& group) {
  for (const TensorWithMovedAxis& moved : group.tensors) {
    if (moved.entry == nullptr || !moved.entry->mesh || moved.entry->placements.empty()) continue;
    std::size_t from = moved.is_request_wrong ? moved.relation.grown : moved.relation.shrunk;
    std::size_t to = moved.is_request_wrong ? moved.relation.shrunk : moved.relation.grown;
    std::string in_spec = to_text(moved.entry->placements);
    std::string other = to_text(with_shard_dim_replaced(moved.entry->placements, from, to));
    group.recorded = moved.is_request_wrong ? in_spec : other;
    group.correct = moved.is_request_wrong
                        ? to_text(with_shard_dim_replaced(moved.entry->placements, to, from))
                        : in_spec;
    group.mesh = to_text(*moved.entry->mesh);
    return;
  }
}

void record_shapes(const Checkpoint& checkpoint, MoveGroup& group) {
  for (const TensorWithMovedAxis& moved : group.tensors) {
    group.saved.push_back(to_text(checkpoint.shape(moved.tensor)));
    group.expected.push_back(to_text(moved.expected));
    group.tiles.push_back(biggest_tile(checkpoint, moved.tensor));
    group.tile_count += checkpoint.chunks(moved.tensor).size();
    if (moved.entry != nullptr) continue;
    ++group.deduced;
    group.confidence = std::min(group.confidence, moved.by_hidden ? 0.95 : 0.8);
  }
  read_placements(group);
}

std::string cause_if_checkpoint_is_wrong(const MoveGroup& group, const Evidence& evidence) {
  const AxisRelation& relation = group.tensors.front().relation;
  bool all_deduced = group.deduced == group.tensors.size();
  std::string than = " as long as expected";
  if (all_deduced)
    than = " as long as the tensors next to it say" +
           (evidence.hidden
                ? fmt::format(" ({} has {})", evidence.hidden->said_by, evidence.hidden->size)
                : std::string());
  auto [low, high] = std::minmax(relation.grown, relation.shrunk);
  return fmt::format(
      "Dim {} is {}{} and dim {} {} as long: the shards were written after transposing dims {} and "
      "{}, but recorded with the placements from before{}.",
      relation.grown, times(relation.factor), than, relation.shrunk, part(relation.factor), low,
      high, quoted(group.recorded));
}

std::string cause_if_spec_is_wrong(const MoveGroup& group) {
  const AxisRelation& relation = group.tensors.front().relation;
  // Used if the spec is wrong and the checkpoint is right. The relation was measured on the
  // checkpoint, so `grown` and `shrunk` are swapped here: a dim that is too long in the spec looks
  // too short on disk.
  return fmt::format(
      "The checkpoint is right; the loader is wrong: it expects dim {} {} as long and dim {} {} as "
      "long, because it transposes its shards but keeps the placements from before{}.",
      relation.shrunk, times(relation.factor), relation.grown, part(relation.factor),
      quoted(group.recorded));
}

Remedy remedy_of(const Checkpoint& checkpoint, const MoveGroup& group) {
  bool consolidated = std::any_of(
      group.tensors.begin(), group.tensors.end(),
      [&](const TensorWithMovedAxis& moved) { return is_consolidated(checkpoint, moved.tensor); });
  if (consolidated) {
    return {"retile", true,
            "Lossless: rewrite the files, with the bytes of " +
                plural(group.tensors.size(), "tensor") + " in the right order."};
  }
  return {"relabel", true,
          "Lossless: correct the offsets of " +
              plural(static_cast<std::uint64_t>(group.tile_count), "chunk") + ", no byte moves."};
}

void report_moved(const Checkpoint& checkpoint, MoveGroup group, const Evidence& evidence,
                  std::vector<Finding>& findings) {
  record_shapes(checkpoint, group);
  const TensorWithMovedAxis& first = group.tensors.front();
  bool is_request_wrong = first.is_request_wrong;
  Finding finding{.rule = "placement-axis-moved",
                  .severity = is_request_wrong ? Severity::kWarning : Severity::kError};
  finding.link = "NeMo AutoModel #1691";
  for (const TensorWithMovedAxis& moved : group.tensors)
    finding.subjects.emplace_back(checkpoint.fqn(moved.tensor));
  finding.cause = is_request_wrong ? cause_if_spec_is_wrong(group)
                                   : cause_if_checkpoint_is_wrong(group, evidence);
  auto grown =
      static_cast<std::int64_t>(is_request_wrong ? first.relation.shrunk : first.relation.grown);
  auto shrunk =
      static_cast<std::int64_t>(is_request_wrong ? first.relation.grown : first.relation.shrunk);
  finding.evidence = {{"saved", copy_of(checkpoint.shape(first.tensor))},
                      {"expected", first.expected},
                      {"factor", first.relation.factor},
                      {"axes", Extents{grown, shrunk}},
                      {"grown", grown},
                      {"shrunk", shrunk},
                      {"where", std::string(is_request_wrong ? "request" : "checkpoint")},
                      {"tile", group.tiles.front()},
                      {"tile_count", group.tile_count},
                      {"confidence", group.confidence},
                      {"saved_shapes", group.saved},
                      {"expected_shapes", group.expected}};
  if (!group.recorded.empty()) {
    finding.evidence.emplace_back("mesh", group.mesh);
    finding.evidence.emplace_back("recorded_placements", group.recorded);
    finding.evidence.emplace_back("correct_placements", group.correct);
  }
  if (group.deduced != 0) {
    finding.evidence.emplace_back("deduced", count_of(group.deduced));
    if (evidence.hidden) {
      finding.evidence.emplace_back("hidden_size", evidence.hidden->size);
      finding.evidence.emplace_back("hidden_size_from", evidence.hidden->said_by);
    }
  }
  if (!is_request_wrong) {
    finding.remedy = remedy_of(checkpoint, group);
    for (TensorWithMovedAxis& moved : group.tensors)
      finding.diagnoses.push_back(AxisMoved{moved.tensor, moved.relation.grown,
                                            moved.relation.shrunk, moved.relation.factor,
                                            std::move(moved.expected)});
  }
  findings.push_back(std::move(finding));
}

void find_moved_placements(const Facts& facts, std::vector<Finding>& findings) {
  Evidence evidence;
  evidence.saved = families_of(facts);
  if (facts.spec != nullptr) evidence.expected = families_of(*facts.spec);
  evidence.hidden = hidden_size(facts);
  std::vector<TensorWithMovedAxis> all = by_spec(facts, evidence);
  for (TensorWithMovedAxis& moved : find_moved_by_siblings(facts, evidence))
    all.push_back(std::move(moved));
  std::sort(all.begin(), all.end(), [](const TensorWithMovedAxis& a, const TensorWithMovedAxis& b) {
    return a.tensor < b.tensor;
  });

  // Groups tensors by the pair of axes and the factor. Tensors with a tie join a group that
  // unambiguous tensors formed; without such a group only shape-mismatch reports them.
  using Key = std::tuple<bool, std::size_t, std::size_t, std::int64_t>;
  auto key_of = [](const TensorWithMovedAxis& moved) {
    return Key{moved.is_request_wrong, moved.relation.grown, moved.relation.shrunk,
               moved.relation.factor};
  };
  std::map<Key, MoveGroup> groups;
  for (const TensorWithMovedAxis& moved : all) {
    if (!moved.tie) groups[key_of(moved)];
  }
  for (TensorWithMovedAxis& moved : all) {
    auto group = groups.find(key_of(moved));
    if (group != groups.end()) group->second.tensors.push_back(std::move(moved));
  }
  for (auto& [key, group] : groups)
    report_moved(facts.checkpoint, std::move(group), evidence, findings);
}

}  // namespace

const Rule kPlacementAxisMoved = {
    .id = "placement-axis-moved",
    .depth = Depth::kMetadata,
    .title = "A tensor was transposed, but its placements were not",
    .teaches =
        "A sharded tensor was transposed on its way to disk, as when fused expert weights are "
        "written under their Hugging Face names, but its placements still name the old axis. torch "
        "computes the global shape from the local shape and the placements, so the old axis "
        "becomes too long by the number of shards and the other too short by the same factor; "
        "every chunk holds the right bytes at the wrong offsets. The number of elements is right "
        "and the chunks cover everything, so the error appears only when a loader with the true "
        "shape refuses it. The repair corrects the offsets; no tensor byte moves. If the "
        "neighbouring tensors show that the checkpoint is right and the loader wrong, nothing "
        "needs repair on disk: fix the loader.",
    .lesson = {.drawing = R"(
  saved as [6, 2]          expected [3, 4]
  ┌────────┐               ┌────────┬────────┐
  │  0   3 │               │  0   3 │  6   9 │
  │  1   4 │ rank 0        │  1   4 │  7  10 │
  │  2   5 │               │  2   5 │  8  11 │
  ├────────┤               └────────┴────────┘
  │  6   9 │                 rank 0   rank 1
  │  7  10 │ rank 1
  │  8  11 │               the same two tiles; only their offsets change
  └────────┘
)",
               .remedy = "`shardwright repair` corrects the chunk offsets: lossless. If the "
                         "checkpoint is right and the loader wrong, update the loader.",
               .link = "https://github.com/NVIDIA-NeMo/Automodel/pull/1691"},
    .words = {.text = "will not load"},
    .outcome = RunOutcome::kLoadFails,
    .makes_shapes_doubtful = true,
    .run = find_moved_placements,
};

}  // namespace shw
