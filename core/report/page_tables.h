// Sections of the HTML page about the checkpoint itself, findings aside. Each is empty where there
// is nothing to say.
#pragma once

#include <string>

#include "core/report/page_parts.h"

namespace shw {

// Who wrote how much, and what the spec says about meshes and placements.
std::string mesh_section(const ReportInput& input);
// Those that are not as they should be first; at most kMostRows.
std::string files_section(const ReportInput& input);
// A line of numbers a tensor with its histogram, the gravest first; at most kMostRows.
std::string statistics_section(const ReportInput& input);
// What certificate.json says about how this was made. It is not proved here.
std::string certificate_section(const ReportInput& input);

}  // namespace shw
