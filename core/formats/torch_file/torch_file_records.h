// The records of a torch.save file that are neither its pickle nor a storage.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/common/zip.h"
#include "core/model/finding.h"

namespace shw {

// What repairs filled (common/filled_attribute.h), in a record of its own: torch passes over it.
inline constexpr std::string_view kFilledRecord = "shardwright_filled";

// By its first bytes: kUnsupported names what torch.save wrote before its zip form.
Status check_is_archive(const ByteSource& source);

// Records that torch.load needs and that are gone or changed.
std::vector<Finding> record_findings(const ZipReader& zip, const std::string& file);

Result<std::optional<std::string>> read_filled_record(const ZipReader& zip);

}  // namespace shw
