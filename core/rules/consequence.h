// Derives from findings whether the checkpoint still loads, and whether it loads correct values,
// using diagnoses so that rules need not state it.
#pragma once

#include <string>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/model/finding.h"

namespace shw {

Consequence consequence_of(const Finding& finding, const Checkpoint& checkpoint);

// The worst consequence; kNone if no finding is above info.
Consequence worst_consequence(const std::vector<Finding>& findings);

// "Loads, silently wrong": the begin of a verdict. kNone: the findings concern options, not the
// checkpoint.
std::string title_of(Consequence consequence);
// "May not load" for a warning of what stops other loads.
std::string title_of(const Finding& finding);
// Of all findings: as bad as the worst of them, and never "Loads" above one that may not load.
std::string title_of(const std::vector<Finding>& findings);

}  // namespace shw
