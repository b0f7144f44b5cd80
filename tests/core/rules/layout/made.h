// Checkpoints built by code for the known failures, and the findings of a check.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/builder.h"
#include "core/rules/check.h"
#include "core/unnamed_format.h"

namespace shw {

struct SavedTile {
  Extents offsets, sizes;
  std::uint32_t writer;
};

struct Made {
  CheckpointBuilder builder;
  std::shared_ptr<Spec> spec = std::make_shared<Spec>();
  std::int64_t at = 0;

  Made() { builder.set_format(test::kUnnamedFormat); }
  Made& tensor(const std::string& fqn, const Extents& shape, const std::vector<SavedTile>& tiles) {
    builder.add_tensor(fqn, Dtype::kFloat32, shape);
    for (const SavedTile& tile : tiles) {
      FileId file = builder.file("__" + std::to_string(tile.writer) + "_0.distcp");
      builder.add_chunk(tile.offsets, tile.sizes, {file, at, 64});
      at += 64;
    }
    return *this;
  }
  Made& expect(const std::string& fqn, Extents shape, std::string_view mesh = "",
               const std::vector<std::string_view>& placements = {}, std::string role = "") {
    SpecEntry& entry = spec->entries[fqn];
    entry.shape = std::move(shape);
    if (!mesh.empty()) entry.mesh = parse_mesh(mesh).value();
    for (std::string_view text : placements)
      entry.placements.push_back(parse_placement(text).value());
    entry.role = std::move(role);
    return *this;
  }
};

struct Seen {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::vector<Finding> findings;

  const Finding* find(std::string_view rule) const {
    for (const Finding& finding : findings) {
      if (finding.rule == rule) return &finding;
    }
    return nullptr;
  }
  bool quiet() const {
    return std::all_of(findings.begin(), findings.end(),
                       [](const Finding& finding) { return finding.severity == Severity::kInfo; });
  }
  // "[0:2]<[0:2]": destination and source of every survivor of a tensor, in the order of the rows.
  std::string retained_chunks(std::string_view fqn) const {
    std::vector<std::pair<Extents, std::string>> lines;
    for (const Finding& finding : findings) {
      for (const Diagnosis& diagnosis : finding.diagnoses) {
        const auto* part = std::get_if<PartlyLost>(&diagnosis);
        if (part == nullptr || checkpoint->fqn(part->tensor) != fqn) continue;
        for (const RetainedChunk& retained_chunk : part->retained_chunks) {
          auto owner = checkpoint->fqn(checkpoint->tensor_of(retained_chunk.chunk));
          std::string from = owner == fqn ? "" : owner.ends_with("_v.exp_avg") ? "v" : "?";
          lines.emplace_back(retained_chunk.at,
                             std::to_string(retained_chunk.at[0]) + "+" +
                                 std::to_string(retained_chunk.source.sizes[0]) + "<" + from +
                                 std::to_string(*checkpoint->writer(retained_chunk.chunk)));
        }
      }
    }
    std::sort(lines.begin(), lines.end());
    std::string text;
    for (const auto& [at, line] : lines) text += (text.empty() ? "" : " ") + line;
    return text;
  }
  std::int64_t number(const Finding& finding, std::string_view key) const {
    for (const auto& [name, value] : finding.evidence) {
      if (name == key) return std::get<std::int64_t>(value);
    }
    return -1;
  }
};

inline Seen look(Made& made, bool with_spec = true, const char* mesh = nullptr) {
  Seen seen;
  seen.checkpoint = made.builder.finish();
  CheckOptions options{Depth::kMetadata, with_spec ? made.spec : nullptr, std::nullopt};
  if (mesh != nullptr) options.mesh = parse_mesh(mesh).value();
  auto report = check(*seen.checkpoint, options, nullptr);
  REQUIRE(report.has_value());
  seen.findings = report->findings;
  return seen;
}

inline std::vector<std::int64_t> order_of(const Seen& seen, std::string_view rule) {
  const Finding* finding = seen.find(rule);
  REQUIRE(finding != nullptr);
  REQUIRE_FALSE(finding->diagnoses.empty());
  return std::get<BlocksPermuted>(finding->diagnoses[0]).order;
}

}  // namespace shw
