// The records of an archive that torch turns into text or a number before it reads a tensor. Where
// the writer left checksums out, their form is all that can be looked at.
#pragma once

#include "core/base/result.h"
#include "core/formats/common/zip.h"

namespace shw {

// torch opens no archive that does not say which version of the form it has, or has records in more
// than one folder; one with constants.pkl is TorchScript's, which is no state of anything.
Status check_is_of_torch_save(const ZipReader& zip);

// The record that torch reads the version from; null where it has none.
const ZipEntry* find_version(const ZipReader& zip);

// An error names the record that torch.load stops at.
Status check_said_records(const ZipReader& zip);

}  // namespace shw
