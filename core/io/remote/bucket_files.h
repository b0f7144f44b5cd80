// Files below a prefix of a bucket: S3, Google Cloud Storage, and compatible servers.
#pragma once

#include <memory>

#include "core/io/remote/remote_files.h"
#include "core/io/remote/remote_path.h"

namespace shw {

// `is_deep`: includes the files in subfolders; otherwise only the files directly in the folder.
std::unique_ptr<RemoteFiles> bucket_files(RemotePlace place, bool is_deep);

// True if the path is the key of an object.
Result<bool> is_bucket_object(const RemotePlace& place);

}  // namespace shw
