// Two checkpoints on disk, and the findings for one with the other as reference.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/rules/check.h"
#include "core/temporary_folder.h"

namespace shw {

inline Values numbers_from(std::int64_t first, std::int64_t count) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(first + i);
  return values;
}

// One tensor in pieces along dim 0 as torch.chunk cuts it, piece i by rank i.
inline MadeTensor cut_in_rows(const std::string& fqn, const Extents& shape, const Values& values,
                              std::int64_t pieces, std::uint32_t first_rank = 0) {
  MadeTensor tensor{fqn, shape, {}};
  std::int64_t step = (shape[0] + pieces - 1) / pieces;
  for (std::int64_t begin = 0; begin < shape[0]; begin += step) {
    Box box = whole(shape);
    box.offsets[0] = begin;
    box.sizes[0] = std::min(step, shape[0] - begin);
    auto rank = first_rank + static_cast<std::uint32_t>(begin / step);
    tensor.chunks.push_back({box, box.sizes, cut_out(values, shape, box), rank});
  }
  return tensor;
}

// One tensor in equal pieces along dim 0, piece i written by writers[i].
inline MadeTensor in_rows(const std::string& fqn, const Extents& shape, const Values& values,
                          const std::vector<std::uint32_t>& writers) {
  MadeTensor tensor{fqn, shape, {}};
  auto pieces = static_cast<std::int64_t>(writers.size());
  for (std::int64_t i = 0; i < pieces; ++i) {
    Box box = whole(shape);
    box.sizes[0] = shape[0] / pieces;
    box.offsets[0] = i * box.sizes[0];
    tensor.chunks.push_back(
        {box, box.sizes, cut_out(values, shape, box), writers[static_cast<std::size_t>(i)]});
  }
  return tensor;
}

inline std::vector<std::uint32_t> each_writes(std::uint32_t ranks, std::uint32_t times = 1) {
  std::vector<std::uint32_t> writers;
  for (std::uint32_t i = 0; i < ranks * times; ++i) writers.push_back(i / times);
  return writers;
}

inline CheckReport held_against(const std::string& path, const std::string& other,
                                std::optional<Depth> depth = {}) {
  CheckOptions options;
  options.depth = depth;
  if (!other.empty()) options.reference = opened(other);
  auto report = check(*opened(path), options);
  REQUIRE(report.has_value());
  return std::move(*report);
}

inline std::vector<const Finding*> all_of(const CheckReport& report, std::string_view rule) {
  std::vector<const Finding*> found;
  for (const Finding& finding : report.findings) {
    if (finding.rule == rule) found.push_back(&finding);
  }
  return found;
}

inline const Finding* first_of(const CheckReport& report, std::string_view rule) {
  auto found = all_of(report, rule);
  return found.empty() ? nullptr : found.front();
}

inline std::size_t count_above_info(const CheckReport& report) {
  return static_cast<std::size_t>(
      std::count_if(report.findings.begin(), report.findings.end(),
                    [](const Finding& finding) { return finding.severity > Severity::kInfo; }));
}

inline Plan plan_for(const std::string& path, const CheckReport& report) {
  auto plan = make_plan(*opened(path), report, {std::nullopt, report.spec});
  REQUIRE(plan.has_value());
  return std::move(*plan);
}

// Repairs `path` as its report says into `out`.
inline std::string repaired_into(const std::string& path, const CheckReport& report,
                                 const std::string& out) {
  auto checkpoint = opened(path);
  auto plan = make_plan(*checkpoint, report, {std::nullopt, report.spec});
  REQUIRE(plan.has_value());
  REQUIRE_FALSE(plan->empty());
  auto result = apply_plan(*checkpoint, *plan, {out, false});
  if (!result) FAIL(result.error().message);
  return result->output;
}

}  // namespace shw
