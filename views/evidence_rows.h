// The lists of a finding's evidence as tables: a row per tensor, file or other name, with what the
// finding says of it. Lists about the same names in the same order make one table.
#pragma once

#include <vector>

#include "core/model/checkpoint.h"
#include "core/model/finding.h"
#include "views/panels/evidence_state.h"

namespace shw {

std::vector<EvidenceTable> evidence_tables(const Checkpoint& checkpoint, const Finding& finding);

}  // namespace shw
