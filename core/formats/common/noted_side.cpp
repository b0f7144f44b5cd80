#include "core/formats/common/noted_side.h"

#include "core/formats/common/torch_file_records.h"

namespace shw {

Result<OpenedSide> open_noted_side(const Directory& directory, const std::string& path,
                                   PickleNotes& notes) {
  SHW_TRY(auto source, directory.open(path));
  SHW_TRY(OpenedSide side, open_side_file(std::move(source)));
  for (Finding& finding : record_findings(side.zip, path))
    notes.findings.push_back(std::move(finding));
  note_pickle(side.tree, path, notes);
  return side;
}

Result<SideFile> read_noted_side(const Directory& directory, const std::string& path,
                                 PickleNotes& notes) {
  SHW_TRY(OpenedSide side, open_noted_side(directory, path, notes));
  return side_tensors_of(side);
}

}  // namespace shw
