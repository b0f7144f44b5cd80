#include "core/rules/reference_bytes.h"

namespace shw {

std::optional<TensorValues> whole_values(const Checkpoint& checkpoint, TensorId tensor) {
  if (checkpoint.directory() == nullptr || size_of(checkpoint.dtype(tensor)) == 0)
    return std::nullopt;
  if (judge_tiling(checkpoint, tensor).tiling != Tiling::kExact) return std::nullopt;
  auto values = read_tensor(checkpoint, tensor, kComparedUpTo);
  if (!values || values->uncovered != 0) return std::nullopt;
  return std::move(*values);
}

std::optional<TensorId> counterpart(const RuleInput& input, TensorId tensor) {
  if (input.reference == nullptr || index_of(tensor) >= input.counterparts.size())
    return std::nullopt;
  auto other = input.counterparts[index_of(tensor)];
  if (!other || input.reference->dtype(*other) != input.checkpoint.dtype(tensor))
    return std::nullopt;
  return other;
}

std::unordered_set<std::string_view> with_diagnosis(const std::vector<Finding>& findings) {
  std::unordered_set<std::string_view> subjects;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kInfo || finding.diagnoses.empty()) continue;
    for (const std::string& subject : finding.subjects) subjects.insert(subject);
  }
  return subjects;
}

}  // namespace shw
