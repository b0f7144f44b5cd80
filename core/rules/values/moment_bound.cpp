// Pairs of Adam moments that no sequence of gradients produces.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {

namespace {

struct BrokenBounds {
  std::vector<std::string> subjects, how;
  std::set<std::string> betas;  // betas used for the bound
  std::int64_t pairs = 0, looked_at = 0, above = 0, negative = 0, without_root = 0;
  std::int64_t known = 0;     // of the broken pairs: compared with their own betas
  std::int64_t adams = 0;     // of those: in a group of Adam
  std::int64_t certain = 0;   // of those: above the bound for every beta1
  std::int64_t as_whole = 0;  // of the broken pairs: above the bound in sum
  double worst = 0, bound = 0, bound_of_any = 0;
};

void add_bound_violations(const Checkpoint& c, const MomentPair& pair, const MomentCount& count,
                          BrokenBounds& out) {
  ++out.pairs;
  out.looked_at += count.looked_at;
  if (count.above + count.negative + count.without_root == 0) return;
  out.subjects.emplace_back(c.fqn(pair.mean));
  out.subjects.emplace_back(c.fqn(pair.square));
  out.how.push_back(
      std::string(c.fqn(pair.mean)) + ": " + human_count(static_cast<std::uint64_t>(count.above)) +
      " above the bound, " + human_count(static_cast<std::uint64_t>(count.negative)) +
      " below zero, " + human_count(static_cast<std::uint64_t>(count.without_root)) +
      " without a square, of " + human_count(static_cast<std::uint64_t>(count.looked_at)));
  out.above += count.above;
  out.negative += count.negative;
  out.without_root += count.without_root;
  out.worst = std::max(out.worst, count.worst);
}

std::string betas_text(const std::optional<Betas>& betas) {
  if (!betas) return "0.9 and 0.999, assumed";
  PlainValue first, second;
  first.kind = second.kind = PlainValue::Kind::kNumber;
  first.number = betas->first;
  second.number = betas->second;
  return to_text(first) + " and " + to_text(second) + ", saved next to the states";
}

void add_pair(const Checkpoint& c, const MomentValues& look, BrokenBounds& found) {
  const MomentPair& pair = look.pair;
  const MomentCount& count = look.count;
  // Small squares underflow in half precision.
  if (c.dtype(pair.mean) == Dtype::kFloat16 || c.dtype(pair.square) == Dtype::kFloat16) return;
  if (!look.is_read || count.looked_at == 0 || !std::isfinite(look.constant)) return;
  add_bound_violations(c, pair, count, found);
  found.betas.insert(betas_text(look.betas));
  if (count.above + count.negative + count.without_root == 0) return;
  const double of_any = look.betas ? moment_constant_any_beta1(look.betas->second) : 0;
  if (look.betas) ++found.known;
  if (look.is_adams) {
    ++found.adams;
    // The bound for any beta1 assumes beta1 <= beta2.
    if (look.betas->first <= look.betas->second && count.worst > of_any * (1 + look.slack))
      ++found.certain;
    found.bound_of_any = std::max(found.bound_of_any, of_any);
  }
  if (count.exceeds_bound_in_total(look.betas ? of_any / look.constant : 1)) ++found.as_whole;
  if (found.bound == 0) found.bound = look.constant;
}

// A cause other than mixed rows; empty if there is none.
std::string other_cause_text(const BrokenBounds& found) {
  if (found.negative + found.without_root > 0) return "";
  std::int64_t broken = count_of(found.how.size());
  if (found.known == 0)
    return "than betas of 0.9 and 0.999 allow. No betas were saved with them: different betas, or "
           "an optimizer that only uses Adam's names, may explain it";
  if (found.adams == 0)
    return "than Adam allows with the saved betas. The optimizer may not be Adam: AdaBelief, ADOPT "
           "and others use the same names for their moments";
  if (found.certain == 0)
    return "than the saved betas allow, but within what a different beta1 allows. A beta1 that "
           "changed during the run may explain it";
  bool nearly_all = broken * 10 >= found.pairs * 9 && found.looked_at >= 64;
  if (!nearly_all) return "";
  // ADOPT and LaProp divide a gradient by the root before averaging. Measured: of ADOPT's 9 pairs
  // above the bound 4 exceed it in sum, of LaProp's all, of exchanged rows none.
  if (found.as_whole * 4 >= broken)
    return "than Adam allows, " + human_count(static_cast<std::uint64_t>(found.as_whole)) +
           " of them also in the sum over the tensor. Optimizers that normalize gradients before "
           "averaging them "
           "(ADOPT, LaProp) do that";
  if (found.pairs >= 8 && found.worst <= moment_constant(0.9, 0.999))
    return "than the saved betas allow, but within what 0.9 and 0.999 allow. The betas were "
           "probably changed during the run";
  return "";
}

// States that Adam does not have (SOAP's bases, Adan's differences, scales of quantised moments),
// so that its bound does not apply next to them: {"optimizer.", "layers.0.weight.Q.0"}.
using UnboundedStates = std::set<std::pair<std::string, std::string>>;

UnboundedStates unbounded_states(const Facts& facts) {
  UnboundedStates out;
  for (TensorId tensor : each_tensor(facts)) {
    std::string_view fqn = facts.checkpoint.fqn(tensor);
    auto path = parse_state_fqn(fqn);
    if (!path || path->kind == "step" || role_of_kind(path->kind) != StateRole::kOther) continue;
    out.emplace(optimizer_prefix(fqn).value_or(""),
                unwrapped_name(path->key) + "." + std::string(path->kind));
  }
  return out;
}

bool is_adam_pair(const MomentPair& pair, const UnboundedStates& foreign) {
  auto next = foreign.lower_bound({pair.prefix, pair.key + "."});
  return next == foreign.end() || next->first != pair.prefix ||
         !next->second.starts_with(pair.key + ".");
}

void find_broken_moment_bounds(const Facts& facts, std::vector<Finding>& findings) {
  BrokenBounds found;
  const UnboundedStates foreign = unbounded_states(facts);
  for (const MomentValues& look : each_of(facts.looks.moments, facts)) {
    if (is_adam_pair(look.pair, foreign)) add_pair(facts.checkpoint, look, found);
  }
  if (found.subjects.empty()) return;
  Finding finding{.rule = "moment-bound"};
  std::int64_t broken = count_of(found.how.size());
  std::string of_whom =
      "The two moments of " + plural(static_cast<std::uint64_t>(broken), "parameter");
  std::string reason = other_cause_text(found);
  if (!reason.empty()) {
    finding.severity = Severity::kInfo;
    finding.cause = of_whom + " are further apart " + reason + ". Otherwise rows were mixed up (" +
                    found.how.front() + ").";
  } else {
    finding.severity = Severity::kWarning;
    finding.cause =
        of_whom + " cannot belong together (" + found.how.front() +
        "): no gradients can produce these values, so rows were mixed up or overwritten.";
  }
  finding.evidence = {{"pairs", capped(found.how)},
                      {"pair_count", broken},
                      {"pairs_looked_at", found.pairs},
                      {"elements_above", found.above},
                      {"elements_below_zero", found.negative},
                      {"elements_without_square", found.without_root},
                      {"betas", std::vector<std::string>(found.betas.begin(), found.betas.end())},
                      {"bound", found.bound},
                      {"bound_of_any_beta1", found.bound_of_any},
                      {"largest_ratio", found.worst},
                      {"elements_looked_at", found.looked_at}};
  finding.subjects = std::move(found.subjects);
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kMomentBound = {
    .id = "moment-bound",
    .depth = Depth::kData,
    .title = "The two Adam moments of a parameter contradict each other",
    .teaches =
        "exp_avg is a running mean of the gradients and exp_avg_sq of their squares, so the square "
        "of the first is at most a constant times the second, whatever the gradients were: 52.9 "
        "for the usual betas of 0.9 and 0.999. If it is more, or the second is negative, or zero "
        "next to a first that is not, rows of one of them come from somewhere else. The bound "
        "catches only a few of the mixed elements. The betas of each parameter are read from its "
        "group if they were saved. It is a warning only if the group has the settings that torch's "
        "Adam or a fused one writes, and if no beta1 can explain it: more than 1 / (1 - beta2) "
        "times the second. Otherwise, or if nearly all pairs are above the bound and some also in "
        "the sum over the tensor, it is only a hint: AdaBelief, ADOPT and LaProp share only the "
        "names with Adam. A "
        "second moment below zero, or zero next to a nonzero first, fits none of them. Parameters "
        "with states that Adam does not have (SOAP's bases) are skipped. If moments and masters "
        "are more than 512 MiB, a sample of one eighth of the checkpoint's bytes is read for this, "
        "and the rest is listed under \"not checked\".",
    .lesson =
        {.drawing = R"(
  row    exp_avg   squared   exp_avg_sq   ratio, at most 52.9
   0        0.02    0.0004       0.0010     0.4
   1        0.90      0.81       0.0010     810       from another row
)",
         .remedy =
             "Take the optimizer states from an earlier step, or reset both moments to zero."},
    .hint = {.what = "whether rows of optimizer states were mixed up",
             .needs = "--against an earlier step",
             .remains_open_with_spec = true,
             .remains_open_at_data = true},
    .run = find_broken_moment_bounds,
};

}  // namespace shw
