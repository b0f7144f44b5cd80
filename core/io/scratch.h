// A temporary file without a name, for data that does not fit in memory. The system frees it when
// it is closed or the process is killed.
#pragma once

#include "core/io/source.h"

namespace shw {

// Written bytes can be read back and must not be changed later. size() is the end of the byte range
// that was written furthest into the file.
class ScratchFile : public ByteSource {
 public:
  virtual Status write_at(std::uint64_t offset, BytesView bytes) = 0;
};

}  // namespace shw
