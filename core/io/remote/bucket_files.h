// A prefix of a bucket: S3, Google Cloud Storage, and what speaks as they do.
#pragma once

#include <memory>

#include "core/io/remote/remote_files.h"
#include "core/io/remote/remote_path.h"

namespace shw {

// `is_deep`: with what lies in its folders; else only what lies beside each other in it.
std::unique_ptr<RemoteFiles> bucket_files(RemotePlace place, bool is_deep);

}  // namespace shw
