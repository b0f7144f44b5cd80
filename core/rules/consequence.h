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
// The title for one finding: "May not load" if a warning describes a fault that stops some loads.
std::string title_of(const Finding& finding);
// The title for all findings: that of the worst one, and never "Loads ..." if one finding may stop
// the load.
std::string title_of(const std::vector<Finding>& findings);

}  // namespace shw
