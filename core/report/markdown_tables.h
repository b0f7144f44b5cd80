// Sections of the Markdown report about the checkpoint apart from findings; long ones are folded,
// empty ones omitted.
#pragma once

#include <string>

#include "core/report/page_parts.h"

namespace shw {

// Origin according to certificate.json, which is not verified here.
std::string markdown_certificate(const ReportInput& input);
// Amounts written by each rank, and the spec's meshes and placements.
std::string markdown_mesh(const ReportInput& input);
std::string markdown_files(const ReportInput& input);
std::string markdown_statistics(const ReportInput& input);

}  // namespace shw
