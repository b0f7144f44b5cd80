// An uneven split that every rank described with its own size. `DTensor.from_local` without
// `shape=` computes the global size as size * ranks and the offset as rank * size, which is right
// for even shards; of uneven shards the last ones get too small offsets.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/checked.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/layout/retained_chunks.h"
#include "core/facts/layout/spec_layout.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Rows of shard i of N rows on W ranks, as torch.chunk splits.
std::int64_t chunk_rows(std::int64_t rows, std::int64_t ranks, std::int64_t i) {
  std::int64_t step = (rows + ranks - 1) / ranks;
  return std::clamp<std::int64_t>(rows - i * step, 0, step);
}

bool splits_only_dim(ExtentsView sizes, ExtentsView shape, std::size_t dim) {
  if (sizes.size() != shape.size()) return false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d != dim && sizes[d] != shape[d]) return false;
  }
  return true;
}

// The correct boxes, if all chunks follow this relation along `dim` and every item has the right
// size.
std::optional<WrongBoxes> boxes_by_shard_constraint(const Facts& facts, TensorId tensor,
                                                    const Extents& shape, std::size_t dim) {
  const Checkpoint& c = facts.checkpoint;
  auto chunks = c.chunks(tensor);
  auto ranks = static_cast<std::int64_t>(chunks.size());
  WrongBoxes out{tensor, shape, {}};
  std::int64_t begin = 0;
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    ExtentsView offsets = c.offsets(chunks[i]), sizes = c.sizes(chunks[i]);
    std::int64_t rows = chunk_rows(shape[dim], ranks, i);
    const auto& header = facts.headers[index_of(chunks[i])];
    bool complete = header && same(header->sizes, sizes) && rows > 0 && sizes[dim] == rows &&
                    splits_only_dim(sizes, shape, dim) && offsets[dim] == i * rows;
    auto before = i == 0 ? std::nullopt : c.writer(chunks[i - 1]);
    auto writer = c.writer(chunks[i]);
    if (!complete || !writer || (before && *before >= *writer)) return std::nullopt;
    Box box = whole(sizes);
    box.offsets[dim] = begin;
    begin += rows;
    out.boxes.push_back(std::move(box));
  }
  return begin == shape[dim] ? std::optional(std::move(out)) : std::nullopt;
}

// Positions along the single splitting axis, and its number of parts.
struct SplitPositions {
  std::size_t dim = 0;
  std::int64_t ranks = 1;
  std::vector<std::int64_t> places;  // one per chunk
};
std::optional<SplitPositions> line_of(const Facts& facts, TensorId tensor) {
  const Checkpoint& c = facts.checkpoint;
  const SpecEntry* entry = layout_of(facts, c.fqn(tensor));
  if (entry == nullptr || c.shape(tensor).size() != entry->shape.size()) return std::nullopt;
  std::optional<std::size_t> axis;
  for (std::size_t i = 0; i < entry->placements.size(); ++i) {
    if (!sharded_dim_of(entry->placements[i], entry->shape.size()) || entry->mesh->axes[i].size < 2)
      continue;
    if (axis) return std::nullopt;
    axis = i;
  }
  if (!axis) return std::nullopt;
  SplitPositions line{*sharded_dim_of(entry->placements[*axis], entry->shape.size()),
                      entry->mesh->axes[*axis].size,
                      {}};
  for (ChunkId chunk : c.chunks(tensor)) {
    auto writer = c.writer(chunk);
    auto rank = writer ? rank_in_mesh(facts, *entry->mesh, *writer) : std::nullopt;
    if (!rank) return std::nullopt;
    line.places.push_back(entry->mesh->coordinates(*rank)[*axis]);
  }
  return line;
}

// Places the shards that were kept when two offsets were equal and one shard was dropped. Every
// missing shard must share its offset with a kept one.
std::optional<PartlyLost> place_collided_shards(const Facts& facts, TensorId tensor,
                                                const Extents& shape) {
  const Checkpoint& c = facts.checkpoint;
  auto line = line_of(facts, tensor);
  // Larger than any cluster, and small enough for 64-bit arithmetic below.
  if (!line || line->ranks > (1 << 16) || shape[line->dim] > (std::int64_t{1} << 46))
    return std::nullopt;
  std::int64_t step = (shape[line->dim] + line->ranks - 1) / line->ranks;
  PartlyLost out{tensor, shape, {}, {}};
  std::set<std::int64_t> taken, present;
  for (std::uint32_t i = 0; i < c.chunks(tensor).size(); ++i) {
    ChunkId chunk = c.chunks(tensor)[i];
    std::int64_t place = line->places[i];
    std::int64_t rows = chunk_rows(shape[line->dim], line->ranks, place);
    const auto& header = facts.headers[index_of(chunk)];
    bool agrees = header && same(header->sizes, c.sizes(chunk)) &&
                  splits_only_dim(c.sizes(chunk), shape, line->dim) &&
                  c.sizes(chunk)[line->dim] == rows && c.offsets(chunk)[line->dim] == place * rows;
    if (!agrees || !present.insert(place).second) return std::nullopt;
    taken.insert(place * rows);
    Extents at(shape.size(), 0);
    at[line->dim] = place * step;
    if (rows > 0) out.retained_chunks.push_back(whole_retained_chunk(chunk, c.sizes(chunk), at));
  }
  bool lost = false;
  for (std::int64_t place = 0; place < line->ranks; ++place) {
    std::int64_t rows = chunk_rows(shape[line->dim], line->ranks, place);
    if (rows == 0 || present.contains(place)) continue;
    if (!taken.contains(place * rows)) return std::nullopt;
    lost = true;
  }
  return lost ? std::optional(std::move(out)) : std::nullopt;
}

// Wrong offsets of uneven shards along a dim that the spec does not split. With even rows the rule
// placement-axis-moved reports it.
struct WrongAxisShards {
  WrongBoxes boxes;
  std::size_t grown = 0;
};
std::optional<WrongAxisShards> find_wrong_axis_shards(const Facts& facts, TensorId tensor,
                                                      const Extents& shape) {
  const Checkpoint& c = facts.checkpoint;
  auto line = line_of(facts, tensor);
  if (!line || line->ranks > (1 << 16) || shape[line->dim] > (std::int64_t{1} << 46))
    return std::nullopt;
  const std::int64_t step = (shape[line->dim] + line->ranks - 1) / line->ranks;
  WrongAxisShards out{{tensor, shape, {}}, line->dim};
  std::set<std::int64_t> present;
  std::int64_t rows_found = 0;
  for (std::uint32_t i = 0; i < c.chunks(tensor).size(); ++i) {
    ChunkId chunk = c.chunks(tensor)[i];
    const std::int64_t place = line->places[i];
    const std::int64_t rows = chunk_rows(shape[line->dim], line->ranks, place);
    ExtentsView sizes = c.sizes(chunk), offsets = c.offsets(chunk);
    const auto& header = facts.headers[index_of(chunk)];
    bool agrees = header && same(header->sizes, sizes) &&
                  splits_only_dim(sizes, shape, line->dim) && sizes[line->dim] == rows &&
                  present.insert(place).second;
    for (std::size_t d = 0; agrees && d < offsets.size(); ++d) {
      if (offsets[d] == 0) continue;
      if (out.grown == line->dim) out.grown = d;
      auto expected = checked_mul(place, shape[d]);
      agrees = d != line->dim && d == out.grown && expected && offsets[d] == *expected;
    }
    if (!agrees) return std::nullopt;
    rows_found += rows;
    Box box = whole(sizes);
    box.offsets[line->dim] = std::min(place * step, shape[line->dim]);
    out.boxes.boxes.push_back(std::move(box));
  }
  const bool complete = out.grown != line->dim && rows_found == shape[line->dim];
  return complete ? std::optional(std::move(out)) : std::nullopt;
}

// Split tensors with wrong chunks that the spec names and no finding explains.
struct Open {
  TensorId tensor{};
  const SpecEntry* entry = nullptr;
};
std::vector<Open> tensors_without_diagnosis(const Facts& facts,
                                            const std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  const auto explained = subjects_with_diagnosis(findings);
  std::vector<Open> open;
  for (TensorId tensor : each_tensor(facts)) {
    const SpecEntry* entry = facts.spec->find(c.fqn(tensor));
    if (entry == nullptr || explained.contains(c.fqn(tensor)) || c.chunks(tensor).size() < 2 ||
        facts.tilings[index_of(tensor)].tiling != Tiling::kInexact)
      continue;
    open.push_back({tensor, entry});
  }
  return open;
}

void report_wrong_axis_shards(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  Finding finding{.rule = "uneven-shards"};
  for (const Open& open : tensors_without_diagnosis(facts, findings)) {
    const TensorId tensor = open.tensor;
    const SpecEntry* entry = open.entry;
    auto turned = find_wrong_axis_shards(facts, tensor, entry->shape);
    if (!turned) continue;
    if (finding.subjects.empty()) {
      finding.cause = fmt::format(
          "{} was cut unevenly along another dimension than dim {}, along which each rank recorded "
          "its shard: the shape is wrong and seems to have gaps, though every item is complete.",
          c.fqn(tensor), turned->grown);
      finding.evidence = {{"recorded_along_dimension", static_cast<std::int64_t>(turned->grown)},
                          {"saved", copy_of(c.shape(tensor))},
                          {"expected", entry->shape}};
    }
    finding.subjects.emplace_back(c.fqn(tensor));
    finding.diagnoses.emplace_back(std::move(turned->boxes));
  }
  if (finding.subjects.empty()) return;
  finding.remedy = Remedy{"relabel", true, "Place every shard where torch.chunk puts it."};
  finding.link = "pytorch #110762";
  findings.push_back(std::move(finding));
}

void report_collided_shards(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  auto explained = subjects_with_diagnosis(findings);
  Finding finding{.rule = "uneven-shards"};
  finding.link = "flashoptim #6";
  std::vector<PartlyLost> parts;
  for (TensorId tensor : each_tensor(facts)) {
    const SpecEntry* entry = facts.spec->find(c.fqn(tensor));
    if (entry == nullptr || explained.contains(c.fqn(tensor)) || c.chunks(tensor).empty()) continue;
    auto part = place_collided_shards(facts, tensor, entry->shape);
    if (!part) continue;
    if (finding.subjects.empty())
      finding.cause = std::string(c.fqn(tensor)) +
                      " was cut unevenly, and each rank computed its offset from its own size: two "
                      "got the same offset and only one of the two shards was kept.";
    finding.subjects.emplace_back(c.fqn(tensor));
    parts.push_back(std::move(*part));
  }
  if (parts.empty()) return;
  LostCount loss = loss_of(parts);
  finding.evidence = {{"saved", copy_of(c.shape(parts.front().tensor))},
                      {"expected", parts.front().expected},
                      {"total_kept_elements", loss.kept},
                      {"total_lost_elements", loss.lost}};
  finding.remedy = Remedy{"retile", false,
                          fmt::format("Place every saved shard where torch.chunk puts it and mask "
                                      "those whose offset collided: {} elements kept, {} lost.",
                                      loss.kept, loss.lost)};
  for (PartlyLost& part : parts) finding.diagnoses.emplace_back(std::move(part));
  findings.push_back(std::move(finding));
}

void add_complete(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  Finding finding{.rule = "uneven-shards"};
  for (const Open& open : tensors_without_diagnosis(facts, findings)) {
    const TensorId tensor = open.tensor;
    const SpecEntry* entry = open.entry;
    for (std::size_t dim = 0; dim < entry->shape.size(); ++dim) {
      if (c.shape(tensor).size() != entry->shape.size()) break;
      auto boxes = boxes_by_shard_constraint(facts, tensor, entry->shape, dim);
      if (!boxes) continue;
      if (finding.subjects.empty()) {
        finding.cause = fmt::format(
            "{} was cut unevenly ({} on {} ranks), and each rank computed the global size and its "
            "offset from its own size: shards overlap and the end seems missing, though every "
            "shard was saved.",
            c.fqn(tensor), entry->shape[dim], c.chunks(tensor).size());
        finding.evidence = {{"dimension", static_cast<std::int64_t>(dim)},
                            {"saved", copy_of(c.shape(tensor))},
                            {"expected", entry->shape}};
      }
      finding.subjects.emplace_back(c.fqn(tensor));
      finding.diagnoses.emplace_back(std::move(*boxes));
      break;
    }
  }
  if (finding.subjects.empty()) return;
  finding.remedy = Remedy{"relabel", true, "Place every shard where torch.chunk puts it."};
  finding.link = "flashoptim #6";
  findings.push_back(std::move(finding));
}

void find_uneven_shards(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.spec == nullptr || facts.headers.empty()) return;
  add_complete(facts, findings);
  report_wrong_axis_shards(facts, findings);
  report_collided_shards(facts, findings);
}

}  // namespace

const Rule kUnevenShards = {
    .id = "uneven-shards",
    .depth = Depth::kHeaders,
    .title = "Uneven shards are recorded at wrong offsets",
    .teaches =
        "If a dimension is not a multiple of the number of ranks, the last ranks hold less. Code "
        "that builds a DTensor from the local shard without the global shape assumes that all "
        "ranks hold as much as this one: every rank then records a different global size, and the "
        "smaller shards get offsets that are too low. The stored data is complete, so the repair "
        "places each shard where torch.chunk puts it, even if they were recorded along the wrong "
        "dimension. Shards whose offset collided with another one were dropped by the save: they "
        "are lost, and masked.",
    .lesson = {.drawing = R"(
  7 rows over 3 ranks, cut into 3, 3, 1

  row              0   1   2   3   4   5   6
  held           │ rank 0    │ rank 1    │ 2 │
  recorded at    │ 0         │ 3         │       ranks 0 and 1
                         │ 2 │                   rank 2: 2 x its own one row
)",
               .remedy =
                   "`shardwright repair` places each shard where torch.chunk puts it. Shards whose "
                   "offset collided with another one were dropped by the save and are lost.",
               .link = "https://github.com/pytorch/pytorch/issues/110762"},
    .cause_of = ExplainedSymptoms::kTiles,
    .run = find_uneven_shards,
};

}  // namespace shw
