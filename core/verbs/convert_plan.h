// What `convert` is asked for, as steps: what goes, what its elements become, what it is called.
#pragma once

#include <string>
#include <vector>

#include "core/verbs/transforms.h"

namespace shw::verbs {

struct ConvertPlan {
  Plan plan;
  std::vector<std::string> notes = {};  // a line each: what is left out, cast, and stays
  bool is_empty = false;                // VerbOptions::only fits nothing
};
Result<ConvertPlan> plan_of_convert(const Opened& opened, const VerbOptions& said,
                                    Progress* progress);

}  // namespace shw::verbs
