// Writes the files of a layout with all threads of this
// process.
#pragma once

#include "core/exec/file_writer.h"

namespace shw {

// `done` is called for every file.
Result<WrittenElementSums> write_files(const FileWriterInputs& with, const OnFileDurable& done);

}  // namespace shw
