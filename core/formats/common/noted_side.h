// One file of torch.save among several, with what its pickle and its records give to report.
#pragma once

#include <string>

#include "core/formats/common/pickle_notes.h"
#include "core/formats/common/side_tensors.h"
#include "core/io/source.h"

namespace shw {

Result<OpenedSide> open_noted_side(const Directory& directory, const std::string& path,
                                   PickleNotes& notes);
// Its tensors. Those that damage keeps from being read are reported and not in `unreadable`; of
// storages that are not as they should be the first is reported where no tensor shows it.
Result<SideFile> noted_tensors_of(const OpenedSide& side, const std::string& path,
                                  PickleNotes& notes);
Result<SideFile> read_noted_side(const Directory& directory, const std::string& path,
                                 PickleNotes& notes);

}  // namespace shw
