// Findings about parts of files that cannot be read or that loaders refuse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/finding.h"

namespace shw {

// `at`: the offset in the file.
Finding bad_record_finding(std::string subject, std::string cause,
                           std::optional<std::uint64_t> at = std::nullopt);

// Finding about an unreadable data file in a checkpoint with readable ones. `names`: the tensors
// (or what `noun` says) that an index places in the file. It leaves the check undecided if the
// system refused to read the file.
Finding unread_file_finding(const std::string& path, const Error& error,
                            std::vector<std::string> names, std::string_view noun);

}  // namespace shw
