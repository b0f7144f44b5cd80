// Opens paths of other machines (see parse_remote) for reading.
#pragma once

#include <memory>
#include <string>

#include "core/io/remote/remote_directory.h"

namespace shw {

struct OpenedRemote {
  std::shared_ptr<const RemoteDirectory> directory;
  std::string file;  // if the path names a file: its path in `directory`; else empty
};

// Returns an already open directory while it is in use, so that a place is listed only once.
Result<OpenedRemote> open_remote(const std::string& path);

// The path, what is below it and what it is in are listed anew when they are opened next, although
// a listing is in use: they may have changed since.
void forget_listings(const std::string& path);

}  // namespace shw
