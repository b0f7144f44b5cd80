// Text of an edited plan. It is generated from the plan's tensors, never the other way round.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "core/base/checked.h"
#include "core/repair/lower/lower.h"
#include "core/repair/plan/operations.h"

namespace shw {
namespace {

// Index of each planned tensor, by the names that operations use for it.
std::map<std::string_view, std::size_t> planned_by_name(const Checkpoint& checkpoint,
                                                        const Plan& plan) {
  std::map<std::string_view, std::size_t> planned;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i)
    planned[checkpoint.fqn(plan.tensors[i].tensor)] = i;
  return planned;
}

// Other names that an operation on tiles or entries may use.
std::set<std::string_view> entries_named(const Checkpoint& checkpoint, const Plan& plan) {
  std::set<std::string_view> names;
  for (const RenamedObject& object : plan.objects)
    names.insert(checkpoint.objects()[object.object].fqn);
  for (const PlannedEntry& entry : plan.entries)
    names.insert(checkpoint.objects()[entry.object].fqn);
  return names;
}

bool operations_match_numbers(const Checkpoint& checkpoint, const Plan& plan) {
  std::int64_t lost = 0, lost_by_words = 0;
  std::uint64_t moved = 0, moved_by_words = 0;
  auto add = [](auto& sum, auto number) {
    sum = checked_add(sum, number).value_or(std::numeric_limits<decltype(number)>::max());
  };
  for (const PlannedTensor& tensor : plan.tensors) {
    add(lost, tensor.lost_elements);
    add(moved, bytes_moved(checkpoint, tensor));
  }
  for (const Operation& operation : plan.operations) {
    if (operation.elements_lost < 0 || (operation.lossless && operation.elements_lost != 0))
      return false;
    add(lost_by_words, operation.elements_lost);
    add(moved_by_words, operation.bytes_moved);
  }
  return lost == lost_by_words && moved == moved_by_words;
}

bool operations_match_names(const Checkpoint& checkpoint, const Plan& plan) {
  auto planned = planned_by_name(checkpoint, plan);
  auto entries = entries_named(checkpoint, plan);
  std::vector<bool> told(plan.tensors.size(), false);
  for (const Operation& operation : plan.operations) {
    if (operation.kind == OperationKind::kRewriteMetadata) continue;
    for (const std::string& subject : operation.subjects) {
      auto found = planned.find(subject);
      if (found == planned.end() && !entries.contains(subject)) return false;
      if (found != planned.end()) told[found->second] = true;
    }
  }
  return std::find(told.begin(), told.end(), false) == told.end();
}

// Adds the diagnosis that describe_operations() needs and that the plan's tensors do not state.
void add_diagnosis(const PlannedTensor& tensor, OperationKind kind, Finding& finding) {
  if (!tensor.fqn.empty()) {
    finding.diagnoses.emplace_back(Renamed{tensor.tensor, tensor.fqn, {}});
  } else if (kind == OperationKind::kPermuteBlocks) {
    finding.diagnoses.emplace_back(BlocksPermuted{tensor.tensor, 0, 1, {}});
  } else if (kind == OperationKind::kTranspose) {
    finding.diagnoses.emplace_back(Transposed{tensor.tensor, 0, 1, {}});
  }
}

}  // namespace

void redescribe_operations(const Checkpoint& checkpoint, Plan& plan) {
  if (operations_match_numbers(checkpoint, plan) && operations_match_names(checkpoint, plan))
    return;
  const std::vector<Operation> before = std::exchange(plan.operations, {});
  auto planned = planned_by_name(checkpoint, plan);
  std::vector<bool> told(plan.tensors.size(), false);
  std::vector<Operation> others;  // of entries only, and of `.metadata`
  auto describe = [&](const Finding& finding, const std::vector<std::size_t>& tensors) {
    if (!tensors.empty()) describe_operations(checkpoint, finding, tensors, plan);
  };
  for (const Operation& operation : before) {
    Finding finding{.rule = std::string(operation.rule)};
    std::vector<std::size_t> tensors;
    bool about_tensors = false;
    for (const std::string& subject : operation.subjects) {
      auto found = planned.find(subject);
      about_tensors = about_tensors || checkpoint.find(subject).has_value();
      if (found == planned.end() || told[found->second]) continue;
      told[found->second] = true;
      tensors.push_back(found->second);
      add_diagnosis(plan.tensors[found->second], operation.kind, finding);
    }
    if (operation.kind == OperationKind::kRewriteMetadata || !about_tensors)
      others.push_back(operation);
    else
      describe(finding, tensors);
  }
  Finding nobody;
  std::vector<std::size_t> rest;
  for (std::size_t i = 0; i < told.size(); ++i) {
    if (told[i]) continue;
    rest.push_back(i);
    add_diagnosis(plan.tensors[i], OperationKind::kRelabel, nobody);
  }
  describe(nobody, rest);
  plan.operations.insert(plan.operations.end(), others.begin(), others.end());
}

}  // namespace shw
