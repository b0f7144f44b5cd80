// Relations between findings: which subjects are explained already, and which findings are symptoms
// of another.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/model/finding.h"

namespace shw {

// Subjects of the findings of `rule`, which another rule need not report again.
std::unordered_set<std::string_view> explained_by(const std::vector<Finding>& findings,
                                                  std::string_view rule);

// Old and new names of tensors in findings that rename.
struct NewNames {
  std::unordered_set<std::string> given;  // new names without wrappers: unwrapped_name()
  std::unordered_set<std::string> left;   // old names that no tensor gets
};
NewNames new_names(const Checkpoint& checkpoint, const std::vector<Finding>& findings);

// Reduces symptoms of a found cause to infos: overlaps, gaps and shapes of tensors that the cause
// names. Run once, after all rules.
void demote_symptoms(std::vector<Finding>& findings);

}  // namespace shw
