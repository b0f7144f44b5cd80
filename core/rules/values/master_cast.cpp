// P16: the optimizer's master copy, rounded, is the model's weight.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/locate_rows.h"
#include "core/facts/optimizer_states.h"
#include "core/facts/value_reader.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

struct Difference {
  std::int64_t elements = 0;
  std::int64_t differing = 0;  // rounded, they are not the same code
  std::int64_t far = 0;        // not even near: more than a quarter apart
};

template <NarrowFloat form>
Difference compare_cast(const TensorValues& master, const TensorValues& model) {
  Difference out;
  out.elements = static_cast<std::int64_t>(count_in(model));
  for (std::size_t i = 0; i < count_in(model); ++i) {
    float value = std::bit_cast<float>(bits_at<std::uint32_t>(master.bytes, i));
    std::uint32_t code = bits_at<std::uint16_t>(model.bytes, i);
    if (to_narrow<form>(value) == code || std::isnan(value)) continue;
    double saved = from_narrow<form>(code);
    // Both zeros are one number.
    if (saved == 0 && to_narrow<form>(std::abs(value)) == 0) continue;
    ++out.differing;
    if (!(std::abs(saved - value) <= 0.25 * std::max(std::abs(saved), std::abs(double{value}))))
      ++out.far;
  }
  return out;
}

struct MasterCasts {
  std::vector<std::string> subjects, how, strangers, elsewhere;
  std::int64_t looked_at = 0, differing = 0, far = 0;
};

// "rows [0, 2) are rows [6, 8) of the weight": where most of the rows that differ are found again.
std::string found_elsewhere(const TensorValues& masters, const TensorValues& weights) {
  std::vector<RowRun> runs = moved_rows(masters, weights);
  std::int64_t rows = 0;
  for (const RowRun& run : runs) rows += run.count;
  bool most = rows >= 2 && !masters.shape.empty() && rows * 2 > masters.shape[0];
  if (!most) return "";
  std::vector<std::string> parts;
  for (const RowRun& run : runs)
    parts.push_back("rows " + rows_text(run.first, run.count) + " are rows " +
                    rows_text(run.at, run.count) + " of the weight");
  return some_of(parts);
}

void look_at_state(const Facts& facts, const OptimizerState& state, ValueBudget& budget,
                   MasterCasts& found) {
  const Checkpoint& c = facts.checkpoint;
  if (state.role != StateRole::kMaster || !state.parameter || !state.parameter_is_sure) return;
  TensorId model = *state.parameter;
  if (!same(c.shape(state.state), c.shape(model))) return;
  Dtype narrow = c.dtype(model);
  bool half = narrow == Dtype::kFloat16;
  if (c.dtype(state.state) != Dtype::kFloat32 || (!half && narrow != Dtype::kBfloat16)) return;
  auto masters = read_values(facts, state.state, budget);
  auto weights = masters ? read_values(facts, model, budget) : std::nullopt;
  if (!masters || !weights || masters->dtype != Dtype::kFloat32 || weights->dtype != narrow) return;
  Difference seen = half ? compare_cast<kFloat16Form>(*masters, *weights)
                         : compare_cast<kBfloat16Form>(*masters, *weights);
  ++found.looked_at;
  if (seen.differing * 1000 <= seen.elements) return;
  found.differing += seen.differing;
  found.far += seen.far;
  found.subjects.emplace_back(c.fqn(state.state));
  found.how.push_back(std::string(c.fqn(state.state)) + ": " +
                      human_count(static_cast<std::uint64_t>(seen.differing)) + " of " +
                      human_count(static_cast<std::uint64_t>(seen.elements)) + " differ from " +
                      std::string(c.fqn(model)) + ", " +
                      human_count(static_cast<std::uint64_t>(seen.far)) + " by a quarter or more");
  std::string elsewhere = found_elsewhere(*masters, *weights);
  if (!elsewhere.empty())
    found.elsewhere.push_back(std::string(c.fqn(state.state)) + ": " + elsewhere);
  if ((seen.far * 2 > seen.elements || !elsewhere.empty()) && seen.elements >= 64)
    found.strangers.emplace_back(c.fqn(state.state));
}

void find_master_mismatches(const Facts& facts, std::vector<Finding>& findings) {
  MasterCasts found;
  ValueBudget budget;
  std::unordered_set<std::string_view> explained;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kInfo) continue;
    for (const std::string& subject : finding.subjects) explained.insert(subject);
  }
  for (const OptimizerState& state : each_state(facts)) {
    if (explained.contains(facts.checkpoint.fqn(state.state))) continue;
    look_at_state(facts, state, budget, found);
  }
  if (found.subjects.empty()) return;
  Finding finding;
  finding.rule = "master-cast";
  // A few strangers among masters that fit were put in the wrong place; where none fits, they are
  // perhaps no masters of these weights (an average, another step).
  std::int64_t strangers = count_of(found.strangers.size());
  // Rows that are found again at another place are no average and no rounding.
  bool displaced = !found.elsewhere.empty();
  bool exception =
      strangers > 0 && (displaced || count_of(found.how.size()) * 4 <= found.looked_at);
  finding.severity = exception ? Severity::kWarning : Severity::kInfo;
  finding.cause = plural(found.how.size(), "master copy") == "1 master copy"
                      ? "One master copy is not the weight that it belongs to"
                      : human_count(found.how.size()) +
                            " master copies are not the weights that they belong to";
  finding.cause += " (" + found.how.front() + "): ";
  finding.cause += exception
                       ? "its rows came from elsewhere, and the first step puts them into the "
                         "model."
                       : "saved before the copy back, rounded at random, or averaged.";
  finding.evidence = {
      {"masters", capped(found.how)},         {"count", count_of(found.how.size())},
      {"masters_looked_at", found.looked_at}, {"elements_differing", found.differing},
      {"elements_far_apart", found.far},      {"unlike_in_most_elements", strangers},
      {"tensors_left_out", budget.left_out}};
  if (displaced) finding.evidence.emplace_back("found again at", capped(found.elsewhere));
  finding.subjects = std::move(found.subjects);
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kMasterCast = {
    .id = "master-cast",
    .depth = Depth::kData,
    .title = "A master copy is not the weight that it belongs to",
    .teaches =
        "Training in bfloat16 keeps a copy of each weight in float32, and the weight is that copy "
        "rounded to nearest. Where more than one in a thousand differs, one of the two is from "
        "elsewhere. The first step after a load writes the rounded copy over the weight, so it is "
        "the copy that counts, and nobody sees it happen. Stochastic rounding, averaged weights "
        "and a save before the copy back differ too, by little and everywhere: that is only said. "
        "Where the rows of a copy are found at another place of the weight, that place is named.",
    .lesson = {.drawing = R"(
  master, float32   rounded to bfloat16   weight
      0.12345          0.1235              0.1235     fits
      0.98765          0.9883             -0.4219     from another row
)",
               .remedy = "Fill the masters from the weights: the first step would write them over "
                         "the weights."},
    .run = find_master_mismatches,
};

}  // namespace shw
