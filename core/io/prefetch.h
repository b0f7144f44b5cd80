// Hint to a folder, mostly on another machine, that certain ranges of its files are read next.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/io/source.h"

namespace shw {

struct PrefetchRange {
  std::string path;
  std::uint64_t offset = 0, length = 0;  // may reach beyond the end of the file
};

// Folders where concurrent reads cost less time than single ones.
class PrefetchingDirectory : public Directory {
 public:
  // Reads the ranges concurrently and keeps them for later reads. A range that cannot be read is
  // left out: its error is reported when the file is read.
  virtual void prefetch(std::span<const PrefetchRange> ranges) const = 0;
};

// Null for folders without a prefetch, such as local ones.
inline const PrefetchingDirectory* find_prefetching(const Directory& directory) {
  return dynamic_cast<const PrefetchingDirectory*>(&directory);
}

}  // namespace shw
