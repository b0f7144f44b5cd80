// A strided split of an uneven extent: torch's generations of offsets disagree with the rows
// that ranks hold in training (core/mesh/torch_offset_bugs.h). If boxes are such offsets and items
// hold the training's rows, the chunks are relabelled; if only the hazard exists, it is
// reported.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/layout/retained_chunks.h"
#include "core/facts/layout/spec_layout.h"
#include "core/mesh/torch_offset_bugs.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

bool is_strided(const SpecEntry& entry) {
  return std::any_of(entry.placements.begin(), entry.placements.end(), [](const Placement& p) {
    return p.kind == Placement::Kind::kStridedShard && p.split_factor > 1;
  });
}

// Ranks examined before a hazard is excluded: meshes of today's clusters.
constexpr std::int64_t kRanks = 1 << 14;

bool has_wrong_recorded_boxes(const SpecEntry& entry) {
  for (std::int64_t rank = 0; rank < std::min(entry.mesh->size(), kRanks); ++rank) {
    auto truth = box_of_nested_splits(entry.shape, *entry.mesh, entry.placements, rank);
    if (!truth) return false;
    for (OffsetModel model : {OffsetModel::kByIndex, OffsetModel::kFirstRow}) {
      auto box = box_recorded_by_torch(model, entry.shape, *entry.mesh, entry.placements, rank);
      if (!box || (box->sizes == truth->sizes && is_empty(*truth))) continue;
      if (*box != *truth) return true;
    }
  }
  return false;
}

struct Mislabelled {
  TensorId tensor{};
  const SpecEntry* entry = nullptr;
  OffsetModel model = OffsetModel::kByIndex;
  std::vector<Box> boxes;
  bool have_items_spec_sizes =
      false;  // every item has the sizes that its rank held in training, by the spec
  bool items_read = false;
};

enum class RepairKind : std::uint8_t { kWhole, kCollidingOffsets, kUndecided };

// True if the damage is explained by ranks that recorded equal offsets, of which deduplication kept
// one chunk. Every rank with missing rows must have such a partner, and the kept chunks must not
// overlap.
bool have_colliding_offsets(const Checkpoint& c, const Mislabelled& item) {
  const SpecEntry& entry = *item.entry;
  if (entry.mesh->size() > kRanks) return false;
  std::set<Extents> recorded, held;
  for (std::uint32_t i = 0; i < item.boxes.size(); ++i) {
    recorded.insert(copy_of(c.offsets(c.chunks(item.tensor)[i])));
    if (!is_empty(item.boxes[i]) && !held.insert(item.boxes[i].offsets).second) return false;
  }
  bool any = false;
  for (std::int64_t rank = 0; rank < entry.mesh->size(); ++rank) {
    auto truth = box_of_nested_splits(entry.shape, *entry.mesh, entry.placements, rank);
    auto box = box_recorded_by_torch(item.model, entry.shape, *entry.mesh, entry.placements, rank);
    if (!truth || !box) return false;
    if (is_empty(*truth) || held.contains(truth->offsets)) continue;
    if (!recorded.contains(box->offsets)) return false;
    any = true;
  }
  return any;
}

// Set if every chunk has the box that this torch generation records for its writer, and a recorded
// box is wrong: it is not the box that the rank holds, or torch dropped it because another chunk
// had its offsets.
std::optional<Mislabelled> find_mislabelled_boxes(const Facts& facts, TensorId tensor,
                                                  const SpecEntry& entry, OffsetModel model) {
  const Checkpoint& c = facts.checkpoint;
  Mislabelled out{tensor, &entry, model, {}, true, true};
  bool differs = false;
  for (ChunkId chunk : c.chunks(tensor)) {
    auto writer = c.writer(chunk);
    auto rank = writer ? rank_in_mesh(facts, *entry.mesh, *writer) : std::nullopt;
    if (!rank) return std::nullopt;
    auto box = box_recorded_by_torch(model, entry.shape, *entry.mesh, entry.placements, *rank);
    auto truth = box_of_nested_splits(entry.shape, *entry.mesh, entry.placements, *rank);
    if (!box || !truth || *box != box_of(c, chunk)) return std::nullopt;
    bool read = index_of(chunk) < facts.headers.size() && facts.headers[index_of(chunk)];
    out.items_read = out.items_read && read;
    out.have_items_spec_sizes =
        out.have_items_spec_sizes && read && facts.headers[index_of(chunk)]->sizes == truth->sizes;
    differs = differs || *box != *truth;
    out.boxes.push_back(std::move(*truth));
  }
  if (!differs && !have_colliding_offsets(c, out)) return std::nullopt;
  return out;
}

bool has_volume_of(const std::vector<Box>& boxes, ExtentsView shape) {
  std::int64_t sum = 0;
  for (const Box& box : boxes) sum += volume(box.sizes).value_or(0);
  return sum == volume(shape);
}

RepairKind repair_kind_of(const Checkpoint& c, const Mislabelled& item) {
  if (!item.have_items_spec_sizes) return RepairKind::kUndecided;
  if (has_volume_of(item.boxes, item.entry->shape)) return RepairKind::kWhole;
  return have_colliding_offsets(c, item) ? RepairKind::kCollidingOffsets : RepairKind::kUndecided;
}

// Chunks that overlap or leave gaps, so that some must be wrong.
bool has_overlap_or_gap(const Checkpoint& c, TensorId tensor) {
  std::vector<Box> boxes;
  for (ChunkId chunk : c.chunks(tensor)) {
    Box box = box_of(c, chunk);
    if (!is_inside(box.offsets, box.sizes, c.shape(tensor))) return true;
    for (const Box& other : boxes) {
      if (intersect(other, box)) return true;
    }
    boxes.push_back(std::move(box));
  }
  return !has_volume_of(boxes, c.shape(tensor));
}

std::optional<Mislabelled> find_mislabelled(const Facts& facts, TensorId tensor,
                                            const SpecEntry& entry) {
  for (OffsetModel model : {OffsetModel::kByIndex, OffsetModel::kFirstRow}) {
    auto found = find_mislabelled_boxes(facts, tensor, entry, model);
    if (!found) continue;
    // A complete tiling with matching items is a valid layout.
    if (!found->have_items_spec_sizes && !has_overlap_or_gap(facts.checkpoint, tensor)) continue;
    return found;
  }
  return std::nullopt;
}

Finding describe_mislabelled(const Checkpoint& c, const std::vector<const Mislabelled*>& group) {
  const Mislabelled& first = *group.front();
  Finding finding{.rule = "uneven-strided"};
  finding.link = "pytorch #136228";
  for (const Mislabelled* item : group) finding.subjects.emplace_back(c.fqn(item->tensor));
  finding.cause = "torch computed the offsets of " + finding.subjects.front() +
                  " as if its uneven shards were even: the recorded boxes are not the rows that "
                  "the ranks held.";
  finding.evidence = {
      {"mesh", to_text(*first.entry->mesh)},
      {"placements", to_text(first.entry->placements)},
      {"shape", first.entry->shape},
      {"offsets_of", std::string(first.model == OffsetModel::kByIndex ? "torch 2.5 to 2.7"
                                                                      : "torch since 2.10")}};
  std::vector<std::string> lines;
  for (std::uint32_t i = 0; i < first.boxes.size() && i < 16; ++i)
    lines.push_back(to_text(box_of(c, c.chunks(first.tensor)[i])) + " holds " +
                    to_text(first.boxes[i]));
  finding.evidence.emplace_back("chunks_of_the_first", lines);
  return finding;
}

PartlyLost retained_chunks_of(const Checkpoint& c, const Mislabelled& item) {
  PartlyLost part{item.tensor, item.entry->shape, {}, {}};
  for (std::uint32_t i = 0; i < item.boxes.size(); ++i) {
    const Box& box = item.boxes[i];
    if (!is_empty(box))
      part.retained_chunks.push_back(
          whole_retained_chunk(c.chunks(item.tensor)[i], box.sizes, box.offsets));
  }
  return part;
}

// Places retained chunks at their ranks' boxes; rows of dropped ranks are masked.
void place_retained_chunks(const Checkpoint& c, const std::vector<const Mislabelled*>& group,
                           Finding& finding) {
  std::vector<PartlyLost> parts;
  for (const Mislabelled* item : group) parts.push_back(retained_chunks_of(c, *item));
  LostCount loss = loss_of(parts);
  finding.cause += " If two offsets were equal, only one shard was kept.";
  finding.evidence.emplace_back("total_kept_elements", loss.kept);
  finding.evidence.emplace_back("total_lost_elements", loss.lost);
  finding.remedy =
      Remedy{"retile", false,
             fmt::format("Record each chunk at the rows that its item holds and mask the rows of "
                         "ranks whose offset collided: {} elements kept, {} lost.",
                         loss.kept, loss.lost)};
  for (PartlyLost& part : parts) finding.diagnoses.emplace_back(std::move(part));
}

void add_damage(const Facts& facts, const std::vector<Mislabelled>& all,
                std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  for (RepairKind mending :
       {RepairKind::kWhole, RepairKind::kCollidingOffsets, RepairKind::kUndecided}) {
    std::vector<const Mislabelled*> group;
    for (const Mislabelled& item : all) {
      if (repair_kind_of(c, item) == mending) group.push_back(&item);
    }
    if (group.empty()) continue;
    Finding finding = describe_mislabelled(c, group);
    if (mending == RepairKind::kWhole) {
      for (const Mislabelled* item : group)
        finding.diagnoses.emplace_back(WrongBoxes{item->tensor, item->entry->shape, item->boxes});
      finding.remedy = Remedy{"relabel", true,
                              "Record each chunk at the rows that its item holds: no byte moves, "
                              "nothing is lost."};
    } else if (mending == RepairKind::kCollidingOffsets) {
      place_retained_chunks(c, group, finding);
    } else {
      finding.evidence.emplace_back(
          "undecided",
          std::string(group.front()->items_read
                          ? "the items' shapes do not match the layout"
                          : "the headers of the items must be read (--depth headers)"));
    }
    findings.push_back(std::move(finding));
  }
}

void find_uneven_strides(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.spec == nullptr) return;
  const Checkpoint& c = facts.checkpoint;
  std::vector<Mislabelled> broken;
  Finding hazard{.rule = "uneven-strided", .severity = Severity::kInfo};
  hazard.link = "pytorch #136228";
  std::map<std::string, bool> known;  // by shape, mesh and placements
  for (TensorId tensor : each_tensor(facts)) {
    const SpecEntry* entry = layout_of(facts, c.fqn(tensor));
    if (entry == nullptr || !is_strided(*entry) || !same(entry->shape, c.shape(tensor))) continue;
    std::string layout =
        to_text(ExtentsView(entry->shape)) + to_text(*entry->mesh) + to_text(entry->placements);
    auto [found, added] = known.try_emplace(layout, false);
    if (added) found->second = has_wrong_recorded_boxes(*entry);
    if (!found->second) continue;
    if (auto item = find_mislabelled(facts, tensor, *entry)) {
      broken.push_back(std::move(*item));
      continue;
    }
    if (hazard.subjects.empty()) {
      hazard.cause = std::string(c.fqn(tensor)) + " " + to_text(ExtentsView(entry->shape)) +
                     " is sharded unevenly, and one of the shardings is strided: some versions of "
                     "torch save or load it at wrong offsets.";
      hazard.evidence = {{"mesh", to_text(*entry->mesh)},
                         {"placements", to_text(entry->placements)},
                         {"exact_in", std::string("torch 2.8 and 2.9; check other versions")}};
    }
    hazard.subjects.emplace_back(c.fqn(tensor));
  }
  add_damage(facts, broken, findings);
  if (!hazard.subjects.empty()) findings.push_back(std::move(hazard));
}

}  // namespace

const Rule kUnevenStrided = {
    .id = "uneven-strided",
    .depth = Depth::kMetadata,
    .title = "Uneven strided shards",
    .teaches =
        "If a strided shard does not divide evenly, three generations of torch compute three "
        "different offsets, and only one matches the rows that each rank holds in training. "
        "Recorded boxes then overlap, leave gaps, or disagree with the items. If the items hold "
        "the right rows, the repair corrects the boxes; if two ranks recorded the same offset, the "
        "dropped shard is lost and masked; if nothing is wrong yet, only the risk is reported.",
    .lesson = {.drawing = R"(
  10 rows over tp 2, then dp 2

  row             0   1   2   3   4   5   6   7   8   9
  held          │dp0 tp0    │dp1 tp0│dp0 tp1    │dp1 tp1│
  recorded      │           │           │
                                │       │
                                        │       │
  rows 4 and 5 are claimed twice, rows 8 and 9 by nobody
)",
               .remedy =
                   "`shardwright repair` corrects the chunks' offsets and sizes to match their "
                   "bytes, and masks rows whose offset collided. If this is only a warning, "
                   "nothing is wrong yet: save with a torch that has pytorch #150490.",
               .link = "https://github.com/pytorch/pytorch/pull/150490"},
    .cause_of = ExplainedSymptoms::kTiles,
    .run = find_uneven_strides,
};

}  // namespace shw
