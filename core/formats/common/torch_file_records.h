// The records of a torch.save file that are neither its pickle nor a storage.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/common/zip.h"
#include "core/model/finding.h"

namespace shw {

// What repairs filled (common/filled_attribute.h), in a record of its own: torch passes over it.
inline constexpr std::string_view kFilledRecord = "shardwright_filled";

// The records of a file of torch.save in any of its forms: of a zip archive, or bare
// (before_zip.h). By its first bytes: what else it is, is said.
Result<ZipReader> open_torch_records(std::shared_ptr<const ByteSource> source);

// Records that torch.load needs and that are gone or changed.
std::vector<Finding> record_findings(const ZipReader& zip, const std::string& file);

Result<std::optional<std::string>> read_filled_record(const ZipReader& zip);

// The names of entries that are one value although it is a dict, or a list that holds one: torch's
// flatten_state_dict=False saves such. Without the record they are taken apart, as torch does.
//
//   record = (length ":" name)*, the length in digits
inline constexpr std::string_view kWholeRecord = "shardwright_whole";
Result<std::set<std::string>> read_whole_record(const ZipReader& zip);
std::string whole_record(const std::set<std::string>& names);

}  // namespace shw
