// Bytes that a run cannot hold in memory, in a file without a name: nothing is left of it when
// whoever holds it goes, or is killed.
#pragma once

#include "core/io/source.h"

namespace shw {

// What was written to it is read from it, and changes no more from then on. size() is where the
// last byte was written that lies furthest behind.
class ScratchFile : public ByteSource {
 public:
  virtual Status write_at(std::uint64_t offset, BytesView bytes) = 0;
};

}  // namespace shw
