// Opens one torch.save file of several and collects findings about its pickle and records.
#pragma once

#include <string>

#include "core/formats/common/pickle_notes.h"
#include "core/formats/common/torch_file_tensors.h"
#include "core/io/source.h"

namespace shw {

Result<OpenedTorchFile> open_torch_file_with_findings(const Directory& directory,
                                                      const std::string& path,
                                                      PickleFindings& notes);
// Reads its tensors. Damaged ones are reported and not listed in `unreadable`. If all tensors are
// readable, the first bad storage is reported.
Result<SideFile> tensors_with_findings(const OpenedTorchFile& side, const std::string& path,
                                       PickleFindings& notes);
Result<SideFile> read_torch_file_with_findings(const Directory& directory, const std::string& path,
                                               PickleFindings& notes);

}  // namespace shw
