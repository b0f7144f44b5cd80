// What findings explain of others: what a rule need not say again, and what is a symptom of a cause
// that was found.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/model/finding.h"

namespace shw {

// The subjects that findings of `rule` name: what another rule need not say again.
std::unordered_set<std::string_view> explained_by(const std::vector<Finding>& findings,
                                                  std::string_view rule);

// Names that tensors will have and will have had, by findings that rename.
struct NewNames {
  std::unordered_set<std::string> given;  // without what wrappers add: bare_name()
  std::unordered_set<std::string> left;   // and not given to another
};
NewNames new_names(const Checkpoint& checkpoint, const std::vector<Finding>& findings);

// What chunks and items look like after a cause that was found is no news: overlaps, gaps and
// shapes of tensors that a cause names are only to know. Run once, after all rules.
void demote_symptoms(std::vector<Finding>& findings);

}  // namespace shw
