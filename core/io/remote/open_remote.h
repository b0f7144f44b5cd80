// Opens what parse_remote() understands, for reading.
#pragma once

#include <memory>
#include <string>

#include "core/io/remote/remote_directory.h"

namespace shw {

struct OpenedRemote {
  std::shared_ptr<const RemoteDirectory> directory;
  std::string file;  // in it: what the path names, where that is a file; else empty
};

// The same directory while it is in use: a place is listed once.
Result<OpenedRemote> open_remote(const std::string& path);

}  // namespace shw
