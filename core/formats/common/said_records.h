// The records of an archive that torch turns into text or a number before it reads a tensor. Where
// the writer left checksums out, their form is all that can be looked at.
#pragma once

#include <array>

#include "core/base/result.h"
#include "core/formats/common/zip.h"

namespace shw {

// torch opens no archive that does not say which version of the form it has, has records in more
// than one folder, or none where the directory has one that torch reads; one with constants.pkl is
// TorchScript's, which is no state of anything.
Status check_is_of_torch_save(const ZipReader& zip);

// The record that torch reads the version from; null where it has none.
const ZipEntry* find_version(const ZipReader& zip);

// What torch.load reads besides before any tensor; null where there is none.
std::array<const ZipEntry*, 3> said_records(const ZipReader& zip);

// An error names the record that torch.load stops at.
Status check_said_records(const ZipReader& zip);

}  // namespace shw
