// The files that a format has laid out, written by as many threads as there are, each part where it
// belongs.
#pragma once

#include "core/exec/file_writer.h"

namespace shw {

// `done` hears of every file.
Result<MadeElements> write_files(const FileWriting& with, const FileDone& done);

}  // namespace shw
