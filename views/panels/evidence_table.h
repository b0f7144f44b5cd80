// Draws the tables of a finding's evidence (evidence_rows.h).
#pragma once

#include <string_view>
#include <vector>

#include "views/panels/evidence_state.h"
#include "views/widgets.h"

namespace shw {

// Folds the tables when another finding is shown.
void follow_finding(const Snapshot& snapshot, std::size_t finding, EvidenceState& state);
// True if a table shows this evidence: its list, or the number of its rows.
bool is_in_table(const std::vector<EvidenceTable>& tables, std::string_view label);
// The tables of the digest.
void draw_evidence_tables(Frame& frame, Column& column, EvidenceState& state);

}  // namespace shw
