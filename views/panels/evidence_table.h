// The lists of a finding's evidence as tables: a row per tensor, file or other name, with what the
// finding says of it. Lists about the same names in the same order make one table.
#pragma once

#include <string_view>
#include <vector>

#include "views/panels/evidence_state.h"
#include "views/widgets.h"

namespace shw {

std::vector<EvidenceTable> evidence_tables(const Checkpoint& checkpoint, const Finding& finding);

// Folds the tables when another finding is shown.
void follow_finding(const Snapshot& snapshot, std::size_t finding, EvidenceState& state);
// True if a table shows this evidence: its list, or the number of its rows.
bool is_in_table(const std::vector<EvidenceTable>& tables, std::string_view label);
// The tables of the digest.
void draw_evidence_tables(Frame& frame, Column& column, EvidenceState& state);

}  // namespace shw
