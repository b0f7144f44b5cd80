// The finding of a part of a file that cannot be read, or that loaders refuse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/model/finding.h"

namespace shw {

// `at`: the offset in the file.
Finding bad_record(std::string subject, std::string cause,
                   std::optional<std::uint64_t> at = std::nullopt);

}  // namespace shw
