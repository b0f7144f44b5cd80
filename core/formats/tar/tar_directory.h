// The files in a tar archive as a directory: a .nemo file, a checkpoint packed for a transfer.
//
//   archive = (header data padding)* two blocks of zeros
//   header  = 512 bytes: name, size in octal or in base 256, type, "ustar", prefix of the name
//   type    = file | folder | 'L' (GNU: the data is the next name) | 'x' (pax: path=, size=)
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

// Reads only headers. Links and devices are skipped.
Result<std::shared_ptr<const Directory>> open_tar(std::shared_ptr<const ByteSource> source,
                                                  std::string name);

}  // namespace shw
