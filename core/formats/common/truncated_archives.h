// Files of torch.save that were not opened and end before their archive does.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/io/source.h"
#include "core/model/finding.h"

namespace shw {

// A warning that names the files; nullopt if there are none. Reads both ends of 64 files at most.
std::optional<Finding> truncated_archives_finding(const Directory& directory,
                                                  std::span<const std::string> files);

}  // namespace shw
