// A folder on a web server. HTTP cannot list folders, so files are found by the usual names in
// checkpoints and by the names in an index.
#pragma once

#include <memory>

#include "core/io/remote/remote_files.h"
#include "core/io/remote/remote_path.h"

namespace shw {

// `named`: a file in the folder that must be included; may be empty.
std::unique_ptr<RemoteFiles> http_files(RemotePlace folder, std::string named);

// True if the URL itself is a file. kIo if the server refuses.
Result<bool> is_http_file(const RemotePlace& place);

}  // namespace shw
