// Sections of the HTML page about the checkpoint apart from findings; empty ones are
// omitted.
#pragma once

#include <string>

#include "core/report/page_parts.h"

namespace shw {

// Amounts written by each rank, and the spec's meshes and placements.
std::string mesh_section(const ReportInput& input);
// Files with remarks first; at most kMaxRows.
std::string files_section(const ReportInput& input);
// One row of numbers and a histogram per tensor, the worst first; at most kMaxRows.
std::string statistics_section(const ReportInput& input);
// Origin according to certificate.json, which is not verified here.
std::string certificate_section(const ReportInput& input);

}  // namespace shw
