// Experts saved under other experts' numbers, each as a separate tensor (ISEEKYAN/Megatron-LM #61).
// The reference's bytes identify them. Compares only tensors that differ there; without --data it
// continues past the first layer only if that layer shows the mistake.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/reference/content_search.h"
#include "core/facts/reference/match.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/facts/reference/tensor_contents.h"
#include "core/facts/reference/tensor_likeness.h"
#include "core/rules/explained.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

using Numbers = std::map<std::int64_t, std::int64_t>;  // expert here to expert of the reference
// Empty if unknown. `margin` is that of correlation; 0: equal bytes.
struct ExpertOrder {
  Numbers numbers;
  double margin = 0;
};
using Experts = std::map<std::int64_t, TensorId>;      // differing ones, by number
using ExpertsByTail = std::map<std::string, Experts>;  // by the name part after the number

struct ExpertName {
  std::string before, after;
  std::int64_t number = 0;
};

// "model.layers.0.mlp.experts.", 7, ".up_proj.weight"
std::optional<ExpertName> expert_name_of(std::string_view fqn) {
  constexpr std::string_view kExperts = "experts.";
  const std::size_t at = fqn.rfind(kExperts);
  if (at == std::string_view::npos || fqn.starts_with("optim")) return std::nullopt;
  std::string_view rest = fqn.substr(at + kExperts.size());
  const auto number = consume_number(rest);
  if (!number || !rest.starts_with('.')) return std::nullopt;
  return ExpertName{std::string(fqn.substr(0, at + kExperts.size())), std::string(rest),
                    static_cast<std::int64_t>(*number)};
}

std::map<std::string, ExpertsByTail> differing_experts(const Facts& facts,
                                                       const std::vector<Finding>& findings) {
  const auto differing = explained_by(findings, kDiffersFromReference.id);
  std::map<std::string, ExpertsByTail> layers;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = facts.checkpoint.fqn(tensor);
    if (!differing.contains(fqn) || !facts.counterparts[index_of(tensor)]) continue;
    if (auto name = expert_name_of(fqn)) layers[name->before][name->after][name->number] = tensor;
  }
  return layers;
}

struct Sides {
  const Facts& facts;
  TensorContents here, there;

  TensorId other(TensorId tensor) const { return *facts.counterparts[index_of(tensor)]; }
  Status learn(const Experts& experts) {
    std::vector<TensorId> ours, theirs;
    for (const auto& [number, tensor] : experts) {
      ours.push_back(tensor);
      theirs.push_back(other(tensor));
    }
    SHW_CHECK(here.learn(ours));
    return there.learn(theirs);
  }
};

// The reference's expert for each; empty if one is not found or ambiguous.
Result<Numbers> match_experts_by_content(Sides& sides, const Experts& experts) {
  SHW_CHECK(sides.learn(experts));
  PlacesByContent<std::string, std::int64_t> by_content;
  for (const auto& [number, tensor] : experts) {
    const std::string& content = sides.there.of(sides.other(tensor));
    if (content.empty() || by_content.has(content)) return Numbers{};
    by_content.add(content, number);
  }
  Numbers numbers;
  for (const auto& [number, tensor] : experts) {
    const auto found = by_content.only(sides.here.of(tensor));
    if (!found) return Numbers{};
    numbers[number] = *found;
  }
  return numbers;
}

// The numbers on which all matrices of the layer agree.
Result<Numbers> numbers_of(Sides& sides, const ExpertsByTail& tails) {
  Numbers numbers;
  for (const auto& [after, experts] : tails) {
    SHW_TRY(Numbers found, match_experts_by_content(sides, experts));
    if (found.empty() || (!numbers.empty() && found != numbers)) return Numbers{};
    numbers = std::move(found);
  }
  return numbers;
}

// Matches experts by correlation, for a reference of another training step. Returns the bits of the
// margin, then the reference's number for each expert, as numbers because rank 0 sends them to all
// ranks; empty if no match is certain.
std::vector<std::uint64_t> encode_expert_match(const Sides& sides, const Experts& experts) {
  std::vector<TensorId> here, there;
  std::vector<std::int64_t> numbers;
  for (const auto& [number, tensor] : experts) {
    here.push_back(tensor);
    there.push_back(sides.other(tensor));
    numbers.push_back(number);
  }
  const auto order = match_tensors_by_correlation(sides.facts, here, there);
  if (!order) return {};
  std::vector<std::uint64_t> out{std::bit_cast<std::uint64_t>(order->margin)};
  for (std::size_t place : order->place_of)
    out.push_back(static_cast<std::uint64_t>(numbers[place]));
  return out;
}

ExpertOrder decode_expert_match(const std::vector<std::uint64_t>& told, const Experts& experts) {
  if (told.size() != experts.size() + 1) return {};
  ExpertOrder order{{}, std::bit_cast<double>(told[0])};
  std::size_t i = 0;
  for (const auto& [number, tensor] : experts)
    order.numbers[number] = static_cast<std::int64_t>(told[++i]);
  return order;
}

// Finds the order by correlation, if bytes differ.
Result<ExpertOrder> order_by_correlation(const Sides& sides, const ExpertsByTail& tails) {
  std::vector<const Experts*> all;
  std::vector<ComparisonCost> costs;
  for (const auto& [after, experts] : tails) {
    all.push_back(&experts);
    const std::uint64_t looked_at = tensor_match_bytes(experts.size());
    costs.push_back({looked_at, looked_at});
  }
  auto find = [&](std::size_t i) { return encode_expert_match(sides, *all[i]); };
  SHW_TRY(const auto told, map_numeric_comparisons(sides.facts, "look for experts", costs, find));
  ExpertOrder agreed;
  for (std::size_t i = 0; i < all.size(); ++i) {
    ExpertOrder order = decode_expert_match(told[i], *all[i]);
    if (order.numbers.empty() || (i != 0 && order.numbers != agreed.numbers)) return ExpertOrder{};
    if (i != 0) order.margin = std::min(order.margin, agreed.margin);
    agreed = std::move(order);
  }
  return agreed;
}

Result<ExpertOrder> order_of(Sides& sides, const ExpertsByTail& tails) {
  SHW_TRY(Numbers numbers, numbers_of(sides, tails));
  if (!numbers.empty()) return ExpertOrder{std::move(numbers)};
  return order_by_correlation(std::as_const(sides), tails);
}

std::string run_text(std::int64_t first, std::int64_t last) {
  return first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
}

// "0-31 are the reference's 32-63", per run of adjacent numbers.
std::vector<std::string> runs_of(const Numbers& numbers) {
  std::vector<std::string> runs;
  for (auto at = numbers.begin(); at != numbers.end();) {
    auto last = at;
    for (auto next = std::next(at); next != numbers.end() && next->first == last->first + 1 &&
                                    next->second == last->second + 1;
         ++next)
      last = next;
    runs.push_back(run_text(at->first, last->first) + " are the reference's " +
                   run_text(at->second, last->second));
    at = std::next(last);
  }
  return runs;
}

struct Exchanged {
  std::vector<std::string> subjects, layers, how;
  std::vector<Diagnosis> exchanges;
  std::set<TensorId> tensors;
  bool alike = true;  // equal in all layers
  double margin = 0;  // the least; 0: all by equal bytes
};

void add_layer(const Checkpoint& c, const std::string& before, const ExpertsByTail& tails,
               ExpertOrder order, Exchanged& out) {
  Numbers& numbers = order.numbers;
  std::erase_if(numbers, [](const auto& one) { return one.first == one.second; });
  for (const auto& [after, experts] : tails) {
    for (const auto& [number, tensor] : experts) {
      auto moved = numbers.find(number);
      if (moved == numbers.end()) continue;
      out.subjects.emplace_back(c.fqn(tensor));
      out.tensors.insert(tensor);
      if (auto target = experts.find(moved->second); target != experts.end())
        out.exchanges.emplace_back(copy_content_repair(c, target->second, tensor));
    }
  }
  if (order.margin > 0)
    out.margin = out.margin > 0 ? std::min(out.margin, order.margin) : order.margin;
  std::vector<std::string> runs = runs_of(numbers);
  if (out.layers.empty()) out.how = runs;
  out.alike = out.alike && runs == out.how;
  out.layers.push_back(before + "*");
}

// Removes these subjects from findings about unexplained bytes.
void drop_reported_subjects(const std::vector<std::string>& subjects,
                            std::vector<Finding>& findings) {
  const std::set<std::string_view> told(subjects.begin(), subjects.end());
  std::erase_if(findings, [&](const Finding& finding) {
    return finding.rule == kDiffersFromReference.id &&
           std::all_of(finding.subjects.begin(), finding.subjects.end(),
                       [&](const std::string& subject) { return told.contains(subject); });
  });
}

// Adds renames only if proved by equal bytes and if no optimizer state would be left behind.
void add_new_numbers(const Facts& facts, Exchanged& found, Finding& finding) {
  const bool is_whole = found.exchanges.size() == found.tensors.size();
  if (found.margin > 0 || !is_whole || !states_not_repaired_with(facts, found.tensors, {}).empty())
    return;
  finding.remedy = Remedy{"exchange", true,
                          fmt::format("Put what {} hold under the numbers under which the "
                                      "reference has these bytes: nothing is lost.",
                                      plural(found.exchanges.size(), "tensor"))};
  finding.diagnoses = std::move(found.exchanges);
}

void report_experts(const Facts& facts, Exchanged found, std::vector<Finding>& findings) {
  if (found.subjects.empty()) return;
  drop_reported_subjects(found.subjects, findings);
  Finding finding{.rule = "experts-exchanged"};
  const std::size_t more = found.layers.size() - 1;
  finding.cause = fmt::format(
      "{} of experts {} other experts of their layer hold in the reference{}: of {} {}{}. They "
      "were saved under each other's numbers, so the router sends tokens to the wrong experts "
      "without an error, unless its rows are in the same order.",
      plural(found.subjects.size(), "tensor"),
      found.margin > 0 ? "are like what" : "hold, byte for byte, what",
      found.margin > 0 ? ", matched by correlation (training has changed them since)" : "",
      found.layers.front(), short_list_text(found.how, 4),
      more == 0 ? ""
                : fmt::format(", {} in {}", found.alike ? "and so it is" : "and others",
                              plural(more, "more layer")));
  finding.evidence = {{"layers", capped(found.layers)},
                      {"experts_of_the_first", capped(found.how)},
                      {"same_in_every_layer", found.alike},
                      {"count", count_of(found.subjects.size())}};
  if (found.margin > 0) finding.evidence.emplace_back("least_margin_of_correlation", found.margin);
  finding.subjects = std::move(found.subjects);
  add_new_numbers(facts, found, finding);
  findings.push_back(std::move(finding));
}

Status find_exchanged_experts(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.reference == nullptr) return {};
  Sides sides{facts, {facts, facts.checkpoint}, {facts, *facts.reference}};
  Exchanged found;
  const auto layers = differing_experts(facts, findings);
  for (const auto& [before, tails] : each_of(layers, facts)) {
    SHW_TRY(ExpertOrder order, order_of(sides, tails));
    if (!order.numbers.empty()) add_layer(facts.checkpoint, before, tails, std::move(order), found);
    if (found.layers.empty() && facts.depth != Depth::kData) break;
  }
  report_experts(facts, std::move(found), findings);
  return {};
}

}  // namespace

const Rule kExpertsExchanged = {
    .id = "experts-exchanged",
    .depth = Depth::kHeaders,
    .title = "Experts are saved under each other's numbers",
    .teaches =
        "Under expert parallelism every rank has some of the experts, and the number in a name is "
        "made of the rank's number and its own count. If the ranks of the group were counted in a "
        "different order, each expert is intact but has another expert's number. Shapes and names "
        "are right, so it loads, and the router selects the wrong expert. Only another checkpoint "
        "shows which expert each one is: one of the same step by its bytes, an earlier one by "
        "correlation, if each expert matches exactly one there.",
    .lesson = {.drawing = R"(
  experts of a layer, by the bytes of the reference

  saved as       0 .. 31     32 .. 63
  really        32 .. 63      0 .. 31       rank 0 had the group's second half
)",
               .remedy = "`shardwright repair --against REFERENCE` restores the numbers if bytes "
                         "prove them and all optimizer states can move too. Otherwise rename them "
                         "as the evidence lists, together with their states.",
               .link = ""},
    .run_shared = find_exchanged_experts,
};

}  // namespace shw
