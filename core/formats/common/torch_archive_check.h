// Checks the records of an archive that torch parses before it reads a tensor. If the writer
// omitted checksums, only the form of these records can be checked.
#pragma once

#include <array>

#include "core/base/result.h"
#include "core/formats/zip/zip.h"

namespace shw {

// The record that marks TorchScript (torch.jit.save): the constants of its program.
inline constexpr std::string_view kConstantsRecord = "constants.pkl";

// Fails if torch's reader would refuse the archive: no format version, records in more than one
// folder, or a bad local header of a record that torch parses.
Status check_is_torch_archive(const ZipReader& zip);
// Fails also for TorchScript, which torch.load does not open as tensors.
Status check_is_torch_save_archive(const ZipReader& zip);

// The record from which torch reads the format version; null if there is none.
const ZipEntry* find_version(const ZipReader& zip);

// Other records that torch.load parses before any tensor; null where missing.
std::array<const ZipEntry*, 3> torch_records(const ZipReader& zip);

// The error names the record at which torch.load stops.
Status check_declared_records(const ZipReader& zip);

}  // namespace shw
