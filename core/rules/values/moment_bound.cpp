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
    return "than betas of 0.9 and 0.999 allow. No betas were saved next to them: other betas, or "
           "an optimizer that only has Adam's names, may explain it";
  if (found.adams == 0)
    return "than Adam leaves them with the betas that were saved. Nothing says that it was Adam: "
           "AdaBelief, ADOPT and others keep their moments under the same names";
  if (found.certain == 0)
    return "than the betas allow that were saved, and no further than another beta1 would. A "
           "beta1 that rose or went up and down during the run may explain it";
  bool nearly_all = broken * 10 >= found.pairs * 9 && found.looked_at >= 64;
  if (!nearly_all) return "";
  // ADOPT and LaProp divide a gradient by the root before averaging. Measured: of ADOPT's 9 pairs
  // above the bound 4 exceed it in sum, of LaProp's all, of exchanged rows none.
  if (found.as_whole * 4 >= broken)
    return "than Adam leaves them, " + human_count(static_cast<std::uint64_t>(found.as_whole)) +
           " of them as a whole. Optimizers that divide gradients before they average them (ADOPT, "
           "LaProp) do that";
  if (found.pairs >= 8 && found.worst <= moment_constant(0.9, 0.999))
    return "than the betas allow that were saved, and no further than 0.9 and 0.999 would. The "
           "betas were probably changed during the run";
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
    finding.cause = of_whom + " cannot belong to each other (" + found.how.front() +
                    "): no gradients lead there, so rows were mixed up or overwritten.";
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
    .title = "Two moments that cannot belong to each other",
    .teaches =
        "exp_avg is a running mean of the gradients and exp_avg_sq of their squares, so the square "
        "of the first is at most a constant times the second, whatever the gradients were: 52.9 "
        "for the usual betas of 0.9 and 0.999. Where it is more, or the second is negative or zero "
        "next to a first that is not, rows of one of them came from elsewhere. The bound finds few "
        "of the mixed elements. The betas of each parameter are read from its group where they "
        "were saved. It is a warning only where the group has what torch's Adam or a fused one "
        "writes into it, and where no beta1 leads so far, whatever it was during the run: 1 / (1 - "
        "beta2) times the second. Otherwise, or where nearly all pairs are above and some as a "
        "whole, it is only said: AdaBelief, ADOPT and LaProp share nothing but the names with "
        "Adam. A second moment below zero, or of zero next to a first that is not, is of none of "
        "them. States that Adam does not have (SOAP's bases) leave their parameter out. Where "
        "moments and masters are more than 512 MiB an eighth of the checkpoint's bytes is read "
        "once more for them, from all over the tensors, and what was not read is listed under "
        "\"not checked\".",
    .lesson = {.drawing = R"(
  row    exp_avg   squared   exp_avg_sq   ratio, at most 52.9
   0        0.02    0.0004       0.0010     0.4
   1        0.90      0.81       0.0010     810       from another row
)",
               .remedy = "Take the optimizer from an earlier step, or start both moments at zero."},
    .hint = {.what = "whether rows of optimizer states were mixed up",
             .needs = "--against an earlier step",
             .open_with_spec = true,
             .open_at_data = true},
    .run = find_broken_moment_bounds,
};

}  // namespace shw
