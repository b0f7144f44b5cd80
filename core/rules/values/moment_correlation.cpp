// In a pair of Adam moments, large elements of one are large in the other.
#include <fmt/core.h>

#include <cmath>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {

namespace {

constexpr std::int64_t kEnoughToCorrelate = 10'000;
constexpr double kLeast = 0.15;
// Minimum standard deviation of log(exp_avg_sq) in a tensor. Below it all gradients have nearly one
// magnitude, so even a correct pair of moments does not correlate.
constexpr double kSpread = 0.5;

void find_uncorrelated_moments(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::vector<std::string> lines, subjects;
  std::int64_t pairs = 0;
  for (const MomentValues& look : each_of(facts.looks.moments, facts)) {
    const MomentPair& pair = look.pair;
    const LogCorrelation& seen = look.correlation;
    if (!look.is_read || seen.count <= kEnoughToCorrelate) continue;
    ++pairs;
    double spread = std::sqrt(seen.yy / static_cast<double>(seen.count));
    if (seen.value() >= kLeast || spread < kSpread) continue;
    subjects.emplace_back(c.fqn(pair.mean));
    subjects.emplace_back(c.fqn(pair.square));
    lines.push_back(fmt::format("{}: correlation {} over {} elements", c.fqn(pair.mean),
                                fmt::format("{:f}", seen.value()).substr(0, 5),
                                human_count(static_cast<std::uint64_t>(seen.count))));
  }
  if (lines.empty()) return;
  Finding finding{.rule = "moment-correlation", .severity = Severity::kInfo};
  finding.cause = "The two moments of " + plural(lines.size(), "parameter") +
                  " do not correlate (" + short_list_text(lines) +
                  "): rows of one may belong elsewhere; this alone is not proof.";
  finding.evidence = {{"pairs", capped(lines)},
                      {"pair_count", count_of(lines.size())},
                      {"pairs_looked_at", pairs},
                      {"least_of_a_right_pair", kLeast}};
  finding.subjects = std::move(subjects);
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kMomentCorrelation = {
    .id = "moment-correlation",
    .depth = Depth::kData,
    .title = "The two Adam moments of a parameter do not correlate",
    .teaches =
        "Where gradients are large both moments are large, so the logarithm of the first follows "
        "half the logarithm of the second. If it does not (a correlation below 0.15 over more than "
        "10,000 elements whose second moment varies), rows of one may come from somewhere else. "
        "This is only a hint: synthetic test data looks the same, and only the bound of "
        "moment-bound is certain.",
    .lesson = {.drawing = R"(
  row    log |exp_avg|   half log exp_avg_sq
   0          -9.2             -8.1
   1          -4.1             -8.7       large beside small:
   2          -8.8             -3.2       one of them from another row?
)",
               .remedy = "Only a hint: see whether moment-bound reports the pair too, or compare "
                         "with --against."},
    .hint = {.what = "whether rows of optimizer states were mixed up",
             .needs = "--against an earlier step",
             .remains_open_with_spec = true,
             .remains_open_at_data = true},
    .run = find_uncorrelated_moments,
};

}  // namespace shw
