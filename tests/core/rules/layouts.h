// Layouts for the generated tests: correct and incorrect savers, the findings of the rules, and a
// check that a diagnosis puts everything where its rank really had it.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/facts/facts.h"
#include "core/formats/items/items.h"
#include "core/mesh/torch_offset_bugs.h"
#include "core/rules/check.h"
#include "core/rules/explained.h"
#include "core/rules/rules.h"
#include "core/rules/saved_model.h"

namespace shw::test {

enum class Look : std::uint8_t { kMetadata, kHeaders };

// Findings in the order of the report. Headers are made from the rows that ranks really had.
inline std::vector<Finding> look(const SavedModel& model, bool with_spec,
                                 Look depth = Look::kMetadata, const Mesh* mesh = nullptr) {
  const Checkpoint& c = *model.checkpoint;
  CheckOptions options{Depth::kMetadata, with_spec ? model.spec : nullptr, std::nullopt};
  if (mesh != nullptr) options.mesh = *mesh;
  if (depth == Look::kMetadata) {
    auto report = check(c, options, nullptr);
    REQUIRE(report.has_value());
    return report->findings;
  }
  std::vector<TensorTiling> tilings = compute_tilings(c);
  std::vector<Result<ItemHeader>> headers;
  for (std::uint32_t t = 0; t < c.tensor_count(); ++t) {
    auto truth = model.truth.find(std::string(c.fqn(TensorId{t})));
    for (std::uint32_t i = 0; i < c.chunks(TensorId{t}).size(); ++i) {
      ItemHeader header;
      header.dtype = Dtype::kFloat32;
      header.sizes = truth->second[i].sizes;
      header.strides = row_major_strides(header.sizes);
      headers.emplace_back(std::move(header));
    }
  }
  const ItemHeaders kept = ItemHeadersBuilder::of(std::move(headers));
  CheckInput input{c, options.spec.get(), mesh, kept, {}, {}, tilings};
  Facts facts = build_facts(input);
  std::vector<Finding> findings;
  for (const Rule& rule : all_rules()) {
    if (rule.depth <= Depth::kHeaders) REQUIRE(run_rule(rule, facts, findings).has_value());
  }
  demote_symptoms(findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

inline std::string above_info(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    if (finding.severity > Severity::kInfo) text += finding.rule + ": " + finding.cause + "\n";
  }
  return text;
}

inline std::string describe(const SavedModel& model) {
  std::string text;
  const Checkpoint& c = *model.checkpoint;
  for (std::uint32_t t = 0; t < c.tensor_count(); ++t) {
    const SpecEntry* entry = model.spec->find(c.fqn(TensorId{t}));
    text += std::string(c.fqn(TensorId{t})) + " " + to_text(c.shape(TensorId{t})) + " spec " +
            to_text(entry->shape) + " " + (entry->mesh ? to_text(*entry->mesh) : "") + " (" +
            to_text(entry->placements) + ") " + entry->role + ":";
    for (ChunkId chunk : c.chunks(TensorId{t}))
      text += " " + to_text(Box{copy_of(c.offsets(chunk)), copy_of(c.sizes(chunk))}) + "<" +
              std::to_string(*c.writer(chunk));
    text += "\n";
  }
  return text;
}

// Each rank offers its rows with the right box.
inline SavedTensor honest(std::string fqn, SpecEntry entry) {
  return {std::move(fqn), entry, [entry](std::int64_t rank) -> std::optional<Offer> {
            if (rank >= entry.mesh->size()) return std::nullopt;
            auto box = box_of_nested_splits(entry.shape, *entry.mesh, entry.placements, rank);
            if (!box) return std::nullopt;
            return Offer{*box, entry.shape, *box};
          }};
}

// Compares retained chunks and new boxes with the rows that the ranks really had.
inline void judge(const SavedModel& model, const Finding& finding) {
  const Checkpoint& c = *model.checkpoint;
  for (const Diagnosis& diagnosis : finding.diagnoses) {
    TensorId tensor = tensor_of(diagnosis);
    auto truth_of = [&](ChunkId chunk) {
      TensorId owner = c.tensor_of(chunk);
      std::size_t i = index_of(chunk) - index_of(c.chunks(owner)[0]);
      return model.truth.at(std::string(c.fqn(owner)))[i];
    };
    if (const auto* part = std::get_if<PartlyLost>(&diagnosis)) {
      CHECK(part->expected == model.spec->find(c.fqn(tensor))->shape);
      for (const RetainedChunk& retained_chunk : part->retained_chunks) {
        Extents at = truth_of(retained_chunk.chunk).offsets;
        for (std::size_t d = 0; d < at.size(); ++d) at[d] += retained_chunk.source.offsets[d];
        CHECK(retained_chunk.at == at);
      }
    } else if (const auto* moved = std::get_if<WrongBoxes>(&diagnosis)) {
      for (std::uint32_t i = 0; i < moved->boxes.size(); ++i) {
        if (!is_empty(moved->boxes[i])) CHECK(moved->boxes[i] == truth_of(c.chunks(tensor)[i]));
      }
    } else if (const auto* blocks = std::get_if<BlocksPermuted>(&diagnosis)) {
      for (ChunkId chunk : c.chunks(tensor)) {
        Box truth = truth_of(chunk);
        if (is_empty(truth) || blocks->block != truth.sizes[blocks->dim]) continue;
        std::int64_t to = truth.offsets[blocks->dim] / blocks->block;
        CHECK(blocks->order[static_cast<std::size_t>(to)] ==
              c.offsets(chunk)[blocks->dim] / blocks->block);
      }
    }
  }
}

// A plain tensor: every rank offers its own shard as the whole.
inline SavedTensor plain_state(std::string fqn, const SpecEntry& entry) {
  return {std::move(fqn), entry, [entry](std::int64_t rank) -> std::optional<Offer> {
            auto box = box_of_nested_splits(entry.shape, *entry.mesh, entry.placements, rank);
            if (!box) return std::nullopt;
            return Offer{Box{Extents(box->sizes.size(), 0), box->sizes}, box->sizes, *box};
          }};
}

// A saver that ignores one mesh axis.
inline SavedTensor without(std::string fqn, const SpecEntry& entry, std::size_t axis) {
  MeshLayout reduced = without_axis(*entry.mesh, entry.placements, axis);
  return {std::move(fqn), entry, [entry, reduced, axis](std::int64_t rank) -> std::optional<Offer> {
            auto truth = box_of_nested_splits(entry.shape, *entry.mesh, entry.placements, rank);
            Extents size = entry.shape;
            auto dim = static_cast<std::size_t>(entry.placements[axis].dim);
            size[dim] /= entry.mesh->axes[axis].size;
            auto coordinates = entry.mesh->coordinates(rank);
            coordinates.erase(coordinates.begin() + static_cast<std::ptrdiff_t>(axis));
            auto box = box_of_nested_splits(size, reduced.mesh, reduced.placements,
                                            reduced.mesh.rank(coordinates));
            if (!truth || !box) return std::nullopt;
            return Offer{*box, size, *truth};
          }};
}

inline std::int64_t rows(Dice& dice) {
  return dice.from({5, 6, 8, 10, 12, 16, 24, 32, 48});
}

struct Tally {
  std::string rule;
  int all = 0, named = 0;
  std::size_t diagnoses = 0, damaged = 0;  // tensors: explained, and different from the spec
  std::string missed;
};

// True if chunks are not all where their ranks had them, if the tensor is too short, or if a part
// was dropped.
inline bool is_damaged(const SavedModel& model, TensorId tensor) {
  const Checkpoint& c = *model.checkpoint;
  const Extents& shape = model.spec->find(c.fqn(tensor))->shape;
  const std::vector<Box>& truth = model.truth.at(std::string(c.fqn(tensor)));
  std::int64_t held = 0;
  for (const Box& box : truth) held += volume(box.sizes).value_or(0);
  if (!same(c.shape(tensor), shape) || held < volume(shape)) return true;
  for (std::uint32_t i = 0; i < c.chunks(tensor).size(); ++i) {
    ChunkId chunk = c.chunks(tensor)[i];
    if (volume(c.sizes(chunk)) != 0 && !same(c.offsets(chunk), truth[i].offsets)) return true;
  }
  return false;
}

inline std::size_t damaged_tensors(const SavedModel& model) {
  std::size_t count = 0;
  for (std::uint32_t t = 0; t < model.checkpoint->tensor_count(); ++t)
    count += is_damaged(model, TensorId{t}) ? 1 : 0;
  return count;
}

// Number of damaged tensors with a diagnosis. A tensor that is not damaged must be a moment that is
// reset because its pair lost rows, and must be named.
inline std::size_t diagnosed_damage(const SavedModel& model, const Finding& finding) {
  const auto given_up =
      std::find_if(finding.evidence.begin(), finding.evidence.end(),
                   [](const auto& one) { return one.first == "whole_moments_reset"; });
  std::size_t damaged = 0;
  for (const Diagnosis& diagnosis : finding.diagnoses) {
    if (is_damaged(model, tensor_of(diagnosis))) {
      ++damaged;
      continue;
    }
    REQUIRE(given_up != finding.evidence.end());
    const auto names = std::get<std::vector<std::string>>(given_up->second);
    CHECK(std::find(names.begin(), names.end(), model.checkpoint->fqn(tensor_of(diagnosis))) !=
          names.end());
  }
  return damaged;
}

template <class Make>
Tally run(const char* rule, int count, std::uint32_t seed, Make make,
          Look depth = Look::kMetadata) {
  Tally tally;
  tally.rule = rule;
  for (int i = 0; i < count; ++i) {
    Dice dice(seed + static_cast<std::uint32_t>(i));
    SavedModel model = make(dice);
    std::vector<Finding> findings = look(model, true, depth);
    ++tally.all;
    bool named = !findings.empty() && findings.front().rule == rule;
    if (named)
      ++tally.named;
    else if (tally.missed.empty())
      tally.missed = describe(model) + above_info(findings);
    tally.damaged += damaged_tensors(model);
    CAPTURE(describe(model));
    for (const Finding& finding : findings) {
      CAPTURE(finding.cause);
      tally.diagnoses += diagnosed_damage(model, finding);
      judge(model, finding);
    }
  }
  return tally;
}

}  // namespace shw::test
