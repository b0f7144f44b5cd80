// A folder on a web server. HTTP lists nothing: what lies there is found by the names that
// checkpoints usually have, and by what an index names.
#pragma once

#include <memory>

#include "core/io/remote/remote_files.h"
#include "core/io/remote/remote_path.h"

namespace shw {

// `named`: a file that is known to be meant, or empty.
std::unique_ptr<RemoteFiles> http_files(RemotePlace folder, std::string named);

// Whether the URL itself is a file. kIo where the server refuses.
Result<bool> is_http_file(const RemotePlace& place);

}  // namespace shw
