// Sections of the Markdown report about the checkpoint itself, findings aside, folded where they
// are long. Each is empty where there is nothing to say.
#pragma once

#include <string>

#include "core/report/page_parts.h"

namespace shw {

// What certificate.json says about how this was made. It is not proved here.
std::string markdown_certificate(const ReportInput& input);
// Who wrote how much, and what the spec says about meshes and placements.
std::string markdown_mesh(const ReportInput& input);
std::string markdown_files(const ReportInput& input);
std::string markdown_statistics(const ReportInput& input);

}  // namespace shw
