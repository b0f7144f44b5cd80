// Pairs of tensors that have equal sizes in nearly every model.
#include <array>
#include <map>
#include <unordered_set>

#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/delta_names.h"
#include "core/facts/states/optimizer_states.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

struct PairWords {
  std::string_view first, second;
};
constexpr std::array<PairWords, 6> kPairs = {PairWords{"gate_proj.", "up_proj."},
                                             PairWords{"k_proj.", "v_proj."},
                                             PairWords{".w1.", ".w3."},
                                             PairWords{".wk.", ".wv."},
                                             PairWords{"gate_proj_weight", "up_proj_weight"},
                                             PairWords{"weight_w", "weight_v"}};

std::optional<std::string> name_of_pair_partner(std::string_view fqn) {
  for (const PairWords& pair : kPairs) {
    std::size_t at = fqn.rfind(pair.first);
    if (at == std::string_view::npos) continue;
    std::string other(fqn);
    other.replace(at, pair.first.size(), pair.second);
    return other;
  }
  return std::nullopt;
}

void find_asymmetric_pairs(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::unordered_set<std::string_view> explained;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kInfo) continue;
    for (const std::string& subject : finding.subjects) explained.insert(subject);
  }
  Finding finding{.rule = "pair-asymmetry", .severity = Severity::kInfo};
  std::vector<std::string> shapes;
  for (TensorId tensor : each_tensor(facts)) {
    std::string_view fqn = c.fqn(tensor);
    // Text of bitsandbytes, whose length varies with the digits in it.
    if (fqn.find(".quant_state.") != std::string_view::npos) continue;
    auto name = name_of_pair_partner(fqn);
    auto other = name ? c.find(*name) : std::nullopt;
    if (!other || is_delta_tensor(fqn) || parse_state_fqn(fqn) ||
        same(c.shape(tensor), c.shape(*other)))
      continue;
    if (explained.contains(fqn) || explained.contains(*name)) continue;
    finding.subjects.emplace_back(fqn);
    shapes.push_back(std::string(fqn) + " " + to_text(c.shape(tensor)) + ", " + *name + " " +
                     to_text(c.shape(*other)));
  }
  if (finding.subjects.empty()) return;
  finding.cause = "Two tensors that have equal shapes in most models differ: " + shapes.front() +
                  (shapes.size() == 1 ? "." : ", and others.");
  finding.evidence = {{"pairs", capped(shapes)}, {"pair_count", count_of(shapes.size())}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kPairAsymmetry = {
    .id = "pair-asymmetry",
    .depth = Depth::kMetadata,
    .title = "Two tensors of a pair differ in shape",
    .teaches =
        "Gate and up of a gated layer have the same shape, and so do the keys and values of "
        "attention. If one of a pair is a fraction of the other, part of it was probably lost in "
        "the save. Models may differ on purpose, so this is only a hint, and it is not reported "
        "where a cause was found. A spec or another checkpoint (--against) decides it.",
    .lesson =
        {.drawing = R"(
  gate_proj.weight   [64, 16]
  up_proj.weight     [32, 16]     half of it?
)",
         .remedy =
             "Check with --spec or --against another checkpoint to see which of the two is right."},
    .hint = {.what = "whether part of a pair was lost",
             .needs = "--spec or --against",
             .remains_open_at_data = true},
    .makes_shapes_doubtful = true,
    .run = find_asymmetric_pairs,
};

}  // namespace shw
