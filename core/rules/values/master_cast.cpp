// The optimizer's master weights, rounded, equal the model's weights.
#include <algorithm>
#include <unordered_set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/facts/values/locate_rows.h"
#include "core/facts/values/value_reader.h"
#include "core/rules/rules.h"
#include "core/rules/values/shifted_masters.h"

namespace shw {
namespace {

struct MasterCasts {
  std::vector<std::string> subjects, how, strangers, elsewhere;
  std::int64_t looked_at = 0, differing = 0, far = 0;
};

// "rows [0, 2) are rows [6, 8) of the weight", if most differing rows are found elsewhere.
std::string rows_found_elsewhere_text(const TensorValues& masters, const TensorValues& weights) {
  std::vector<RowRun> runs = locate_moved_rows(masters, weights);
  std::int64_t rows = 0;
  for (const RowRun& run : runs) rows += run.count;
  bool most = rows >= 2 && !masters.shape.empty() && rows * 2 > masters.shape[0];
  if (!most) return "";
  std::vector<std::string> parts;
  for (const RowRun& run : runs)
    parts.push_back("rows " + rows_text(run.first, run.count) + " are rows " +
                    rows_text(run.at, run.count) + " of the weight");
  return short_list_text(parts);
}

bool differs(const MasterValues& look) {
  return look.is_read && look.count.differing * 1000 > look.count.elements;
}

// One line per shifted tile, and the place where differing rows are found, if
// any.
Result<std::vector<std::string>> shift_lines_of(const Facts& facts,
                                                const std::vector<const MasterValues*>& looks) {
  const Checkpoint& c = facts.checkpoint;
  ValueBudget budget = value_budget(facts);
  std::vector<ComparisonCost> costs;
  std::vector<bool> is_asked;
  for (const MasterValues* look : looks) {
    const std::uint64_t both =
        bytes_of_elements(c, look->master) + bytes_of_elements(c, look->weight);
    costs.push_back({both, 2 * both});
    is_asked.push_back(is_within(c, look->master, budget) && is_within(c, look->weight, budget));
  }
  auto find = [&](std::size_t i) -> Result<std::string> {
    if (!is_asked[i]) return std::string();
    ValueBudget own = value_budget(facts);
    auto masters = read_values(facts, looks[i]->master, own);
    auto weights = masters ? read_values(facts, looks[i]->weight, own) : std::nullopt;
    if (!weights) return std::string();
    return tile_shifts(c, looks[i]->master, *masters, *weights) + "\n" +
           rows_found_elsewhere_text(*masters, *weights);
  };
  return map_comparisons(facts, "look for rows of masters", costs, find);
}

void add_master(const Checkpoint& c, const MasterValues& look, const std::string& elsewhere,
                MasterCasts& found) {
  const CastCount& seen = look.count;
  const std::string name(c.fqn(look.master));
  found.differing += seen.differing;
  found.far += seen.far;
  found.subjects.push_back(name);
  found.how.push_back(name + ": " + human_count(static_cast<std::uint64_t>(seen.differing)) +
                      " of " + human_count(static_cast<std::uint64_t>(seen.elements)) +
                      " differ from " + std::string(c.fqn(look.weight)) + ", " +
                      human_count(static_cast<std::uint64_t>(seen.far)) + " by a quarter or more");
  if (!elsewhere.empty()) found.elsewhere.push_back(name + ": " + elsewhere);
  if ((seen.far * 2 > seen.elements || !elsewhere.empty()) && seen.elements >= 64)
    found.strangers.push_back(name);
}

Status find_master_mismatches(const Facts& facts, std::vector<Finding>& findings) {
  MasterCasts found;
  std::unordered_set<std::string_view> explained;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kInfo) continue;
    for (const std::string& subject : finding.subjects) explained.insert(subject);
  }
  std::vector<const MasterValues*> differing;
  for (const MasterValues& look : each_of(facts.looks.masters, facts)) {
    if (explained.contains(facts.checkpoint.fqn(look.master))) continue;
    found.looked_at += look.is_read && look.count.elements != 0;
    if (differs(look)) differing.push_back(&look);
  }
  if (differing.empty()) return {};
  SHW_TRY(auto places, shift_lines_of(facts, differing));
  std::vector<std::string> shifts, elsewhere;
  for (const std::string& place : places) {
    const std::size_t line = std::min(place.find('\n'), place.size());
    shifts.push_back(place.substr(0, line));
    elsewhere.push_back(place.substr(std::min(line + 1, place.size())));
  }
  std::vector<bool> is_shifted(differing.size(), false);
  report_shifted_masters(facts, differing, shifts, is_shifted, findings);
  for (std::size_t i = 0; i < differing.size(); ++i) {
    if (!is_shifted[i]) add_master(facts.checkpoint, *differing[i], elsewhere[i], found);
  }
  if (found.how.empty()) return {};
  Finding finding{.rule = "master-cast"};
  // A few masters that do not fit among many that do were misplaced. If none fits, they belong to
  // other weights or are an average.
  std::int64_t strangers = count_of(found.strangers.size());
  // Rows found elsewhere exclude averaging and rounding.
  bool displaced = !found.elsewhere.empty();
  bool exception =
      strangers > 0 && (displaced || count_of(found.how.size()) * 4 <= found.looked_at);
  const bool are_strangers = strangers * 2 > count_of(found.how.size());
  finding.severity = exception       ? Severity::kError
                     : are_strangers ? Severity::kWarning
                                     : Severity::kInfo;
  finding.cause = plural(found.how.size(), "master copy") == "1 master copy"
                      ? "One master copy does not match its weight"
                      : human_count(found.how.size()) + " master copies do not match their weights";
  finding.cause += " (" + found.how.front() + "): ";
  finding.cause +=
      exception ? "its rows come from somewhere else, and the first optimizer step writes them "
                  "into the model."
                : "saved before the copy to the weights, stochastically rounded, or averaged.";
  finding.evidence = {
      {"masters", capped(found.how)},         {"count", count_of(found.how.size())},
      {"masters_looked_at", found.looked_at}, {"elements_differing", found.differing},
      {"elements_far_apart", found.far},      {"unlike_in_most_elements", strangers}};
  if (displaced) finding.evidence.emplace_back("found_again_at", capped(found.elsewhere));
  finding.subjects = std::move(found.subjects);
  findings.push_back(std::move(finding));
  return {};
}

}  // namespace

const Rule kMasterCast = {
    .id = "master-cast",
    .depth = Depth::kData,
    .title = "A master copy does not match its weight",
    .teaches =
        "bfloat16 training keeps a float32 master copy of each weight, and the weight is that copy "
        "rounded to nearest. If more than one element in a thousand differs, one of the two "
        "comes from somewhere else. The first optimizer step after a load writes the rounded copy "
        "over the weight, without an error, so the copy counts. Stochastic rounding, averaged "
        "weights and a save before the copy to the weights also differ, slightly and everywhere: "
        "that is only a hint. If the rows of a copy are found elsewhere in the weight, that "
        "position is named. If chunks are their weights shifted by a fixed number of elements, the "
        "save counted padding that its buffers do not have: repair with --data shifts masters and "
        "moments back.",
    .lesson = {.drawing = R"(
  master, float32   rounded to bfloat16   weight
      0.12345          0.1235              0.1235     fits
      0.98765          0.9883             -0.4219     from another row
)",
               .remedy = "Fill the masters from the weights; otherwise the first optimizer step "
                         "writes them over the weights."},
    .run_shared = find_master_mismatches,
};

}  // namespace shw
