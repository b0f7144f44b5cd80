// The records of a torch.save file that are neither its pickle nor a storage.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/zip/zip.h"
#include "core/model/finding.h"

namespace shw {

// A record of filled data (common/filled_attribute.h), written by repairs; torch ignores it.
inline constexpr std::string_view kFilledRecord = "shardwright_filled";

// Opens the records of a torch.save file in any form: a zip archive, or bare (legacy_torch_file.h).
// The error for another file names the format found by its first bytes.
Result<ZipReader> open_torch_records(std::shared_ptr<const ByteSource> source);

// Findings about records that torch needs and that are missing or changed. `is_program`: the file
// is TorchScript.
std::vector<Finding> record_findings(const ZipReader& zip, const std::string& file,
                                     bool is_program = false);

Result<std::optional<std::string>> read_filled_record(const ZipReader& zip);

// Names of entries that are one value although they are a dict, or a list with a dict, as torch's
// flatten_state_dict=False saves. Without this record they are flattened, as torch does.
//
//   record = (length ":" name)*, the length in digits
inline constexpr std::string_view kWholeRecord = "shardwright_whole";
Result<std::set<std::string>> read_unflattened_names(const ZipReader& zip);
std::string unflattened_names_record(const std::set<std::string>& names);

}  // namespace shw
