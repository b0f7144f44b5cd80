// From what a finding found to what it means for the person: does the checkpoint still load, and is
// what it loads right? Read off the diagnoses, so that no rule has to say it.
#pragma once

#include <string>

#include "core/model/checkpoint.h"
#include "core/model/finding.h"

namespace shw {

Consequence consequence_of(const Finding& finding, const Checkpoint& checkpoint);

// The worst of all; kNone where nothing is above info.
Consequence worst_consequence(const std::vector<Finding>& findings);

// "Loads, silently wrong": how a verdict over findings begins. kNone: they are about what a person
// said, not about the checkpoint.
std::string title_of(Consequence consequence);

}  // namespace shw
