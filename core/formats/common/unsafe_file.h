// What Python would run if it loaded a pickled file: a file of torch.save in any form, a bare
// pickle, or the pickles in a zip archive.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/io/source.h"
#include "core/model/finding.h"

namespace shw {

// True for a name that Python programs give to pickles: "a.pt", "a.pkl", "a.bin".
bool is_named_as_pickle(std::string_view path);

// Findings of the rule "unsafe-pickle" with severity warning or higher. In a damaged pickle the
// opcodes before the damage are examined, because Python executes them before it fails. Empty if
// the file is not a pickle or cannot be read.
std::vector<Finding> unsafe_findings_of_file(const Directory& directory, const std::string& path);

}  // namespace shw
