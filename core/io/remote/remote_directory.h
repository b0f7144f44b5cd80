// A remote place as a Directory that format readers use.
#pragma once

#include <memory>
#include <string>

#include "core/io/prefetch.h"
#include "core/io/remote/remote_files.h"

namespace shw {

class RemoteDirectory : public PrefetchingDirectory {
 public:
  // The first error of stat() since the last call, because stat() can only report "missing".
  virtual Status take_lookup_error() const = 0;
};

// Lists the place at once, so that an unreachable one is an error here.
Result<std::shared_ptr<const RemoteDirectory>> remote_directory(std::string shown,
                                                                std::unique_ptr<RemoteFiles> files);

}  // namespace shw
