// Matrices of one value, next to the same matrices of other layers that are not.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/weight_kinds.h"
#include "core/facts/values/many_values.h"
#include "core/rules/names/name_rules.h"
#include "core/tensor/float_counts.h"

namespace shw {
namespace {

constexpr std::int64_t kMinElements = 64;

// True for float matrices of at least kMinElements that are no scales or masks, which may be
// constant by design.
bool is_checked_matrix(const Facts& facts, TensorId tensor) {
  const Checkpoint& c = facts.checkpoint;
  const ExtentsView shape = c.shape(tensor);
  const std::string_view fqn = c.fqn(tensor);
  const auto wide = std::count_if(shape.begin(), shape.end(), [](std::int64_t n) { return n > 1; });
  return wide >= 2 && volume(shape).value_or(0) >= kMinElements &&
         can_be_counted(c.dtype(tensor)) &&
         facts.tilings[index_of(tensor)].tiling == Tiling::kExact && is_model_weight(c, tensor) &&
         fqn.find("scale") == fqn.npos && fqn.find("mask") == fqn.npos;
}

struct MatrixFamily {
  std::size_t members = 0;
  std::vector<std::string> constant;
};

std::map<std::string, MatrixFamily> matrix_families(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  std::vector<TensorId> matrices;
  for (TensorId tensor : each_tensor(facts)) {
    if (is_checked_matrix(facts, tensor)) matrices.push_back(tensor);
  }
  const std::vector<bool> has_several = have_more_values_than(facts, matrices, 1);
  std::map<std::string, MatrixFamily> families;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const std::string_view fqn = c.fqn(matrices[i]);
    MatrixFamily& family = families[kind_of_name(fqn, c.shape(matrices[i]).size())];
    ++family.members;
    // Zeros have a rule of their own.
    const auto counts = has_several[i] ? std::nullopt : float_counts(facts, matrices[i]);
    if (counts && counts->count != 0 && counts->zero == 0 && counts->nan == 0)
      family.constant.emplace_back(fqn);
  }
  return families;
}

void find_constant_weights(const Facts& facts, std::vector<Finding>& findings) {
  Finding finding;
  std::vector<std::string> details;
  for (const auto& [kind, family] : matrix_families(facts)) {
    if (family.constant.empty() || family.constant.size() * 2 > family.members) continue;
    details.push_back(fmt::format("{}: {} of {}", kind, family.constant.size(), family.members));
    finding.subjects.insert(finding.subjects.end(), family.constant.begin(), family.constant.end());
  }
  if (finding.subjects.empty()) return;
  const bool is_one = finding.subjects.size() == 1;
  finding.rule = kConstantWeights.id;
  finding.severity = Severity::kWarning;
  finding.cause = fmt::format(
      "All elements of {} {} are equal, and not 0, while the same {} of other layers or experts {} "
      "not ({}). They were filled with a constant and never written, or overwritten with one; a "
      "model uses them without an error.",
      human_count(finding.subjects.size()), is_one ? "matrix" : "matrices",
      is_one ? "matrix" : "matrices", is_one ? "is" : "are", short_list_text(finding.subjects));
  finding.evidence = {{"families", capped(details)}, {"count", count_of(finding.subjects.size())}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kConstantWeights = {
    .id = "constant-weights",
    .depth = Depth::kData,
    .title = "Matrices of one value",
    .teaches =
        "In a trained matrix nearly all elements differ. If all elements are equal, and the same "
        "matrix of other layers or experts varies, it was filled with a constant and never "
        "written. Vectors are not checked: norms start at ones, and some stay there. Zeros are "
        "reported by zero-weights.",
    .lesson = {.drawing = R"(
  layers.5.up_proj.weight     0.013  -0.207   0.090
  layers.6.up_proj.weight     1       1       1         filled, never written
  layers.7.up_proj.weight     0.051   0.120  -0.044
)",
               .remedy = "Take the tensors from an earlier checkpoint; this one does not contain "
                         "their values."},
    .words = {.text = "one value"},
    .outcome = RunOutcome::kLosesElements,
    .run = find_constant_weights,
};

}  // namespace shw
