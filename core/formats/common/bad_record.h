// The finding of a part of a file that cannot be read, or that loaders refuse.
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
Finding bad_record(std::string subject, std::string cause,
                   std::optional<std::uint64_t> at = std::nullopt);

// Of a whole data file that cannot be read, beside others that can. `names`: what an
// index places in it, tensors or whatever `noun` says.
Finding unread_file(const std::string& path, const Error& error, std::vector<std::string> names,
                    std::string_view noun);

}  // namespace shw
