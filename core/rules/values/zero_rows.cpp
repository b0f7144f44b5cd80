#include "core/rules/values/zero_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/names/weight_kinds.h"
#include "core/facts/values/quant_numbers.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Part of the elements that are zeros: at least one in eight in the matrix, and fewer than one in a
// hundred in each other layer's.
constexpr std::int64_t kMinOfMatrix = 8, kMaxOfOthers = 100;
constexpr std::int64_t kMinRows = 4, kMaxOfRow = 4096, kMaxSampled = 64;

struct CountedMatrix {
  TensorId tensor{};
  std::int64_t zero = 0, count = 0;
};

bool is_zero_row(const Checkpoint& c, TensorId tensor, std::int64_t row) {
  const std::int64_t columns = std::min(c.shape(tensor)[1], kMaxOfRow);
  const auto values = read_box_floats(c, tensor, {{row, 0}, {1, columns}});
  return values && std::all_of(values->begin(), values->end(), [](float v) { return v == 0; });
}

struct RowRun {
  std::int64_t first = 0, last = 0;
};

// The zero rows, if they are one run that holds nearly all zeros of the matrix. Rows are sampled,
// so the run may begin and end a step later.
std::optional<RowRun> zero_row_run(const Checkpoint& c, const CountedMatrix& matrix) {
  const std::int64_t rows = c.shape(matrix.tensor)[0], columns = c.shape(matrix.tensor)[1];
  const std::int64_t step = std::max<std::int64_t>(1, rows / kMaxSampled);
  std::optional<RowRun> run;
  for (std::int64_t row = 0; row < rows; row += step) {
    if (!is_zero_row(c, matrix.tensor, row)) continue;
    if (run && row != run->last + step) return std::nullopt;
    if (!run) run = RowRun{row, row};
    run->last = row;
  }
  if (!run || run->last - run->first + step < kMinRows) return std::nullopt;
  // The run must account for all zeros of the matrix but a few: sampling leaves `step` rows at both
  // ends uncertain, and single zeros occur elsewhere.
  const std::int64_t found = (run->last - run->first + step) * columns;
  const std::int64_t tolerance = 2 * step * columns + matrix.count / kMaxOfOthers;
  return std::abs(found - matrix.zero) <= tolerance ? run : std::nullopt;
}

using MatricesByKind = std::map<std::string, std::vector<CountedMatrix>>;

MatricesByKind counted_matrices(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  MatricesByKind kinds;
  for (TensorId tensor : each_tensor(facts)) {
    const bool is_there = is_model_weight(c, tensor) && c.shape(tensor).size() == 2 &&
                          can_be_counted(c.dtype(tensor)) &&
                          facts.tilings[index_of(tensor)].tiling == Tiling::kExact;
    const auto counts = is_there ? float_counts(facts, tensor) : std::nullopt;
    if (!counts || counts->count == 0) continue;
    kinds[kind_of_name(c.fqn(tensor), 2)].push_back({tensor, counts->zero, counts->count});
  }
  return kinds;
}

// The one matrix of its kind with many zeros; null if there is none, or there are several.
const CountedMatrix* only_one_with_zeros(const std::vector<CountedMatrix>& kind) {
  const CountedMatrix* found = nullptr;
  for (const CountedMatrix& one : kind) {
    if (one.zero * kMaxOfOthers < one.count) continue;
    const bool may_be = one.zero * kMinOfMatrix >= one.count && one.zero < one.count;
    if (!may_be || found != nullptr) return nullptr;
    found = &one;
  }
  return kind.size() >= 2 ? found : nullptr;
}

}  // namespace

void report_zero_rows(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  Finding finding{.rule = std::string(kZeroWeights.id), .severity = Severity::kWarning};
  std::vector<std::string> details;
  for (const auto& [kind, matrices] : counted_matrices(facts)) {
    const CountedMatrix* const matrix = only_one_with_zeros(matrices);
    const auto run = matrix == nullptr ? std::nullopt : zero_row_run(c, *matrix);
    if (!run) continue;
    finding.subjects.emplace_back(c.fqn(matrix->tensor));
    details.push_back(fmt::format("{} {}: rows {} to {}", c.fqn(matrix->tensor),
                                  to_text(c.shape(matrix->tensor)), run->first, run->last));
  }
  if (details.empty()) return;
  finding.cause = fmt::format(
      "Consecutive rows are exactly zero in {} of the matrices ({}), and the same weight of no "
      "other layer has such rows. These rows were never written, or filled with zeros; a model "
      "uses them without an error.",
      human_count(details.size()), short_list_text(details));
  finding.evidence = {{"tensors", capped(details)}, {"count", count_of(details.size())}};
  findings.push_back(std::move(finding));
}

}  // namespace shw
