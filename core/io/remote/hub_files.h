// A repository on the Hugging Face hub or a compatible server (HF_ENDPOINT). The revision is first
// resolved to a commit, so that all files are from one commit.
#pragma once

#include <memory>

#include "core/io/remote/remote_files.h"
#include "core/io/remote/remote_path.h"

namespace shw {

// `is_deep`: includes the files in subfolders; otherwise only the files directly in the folder.
std::unique_ptr<RemoteFiles> hub_files(RemotePlace repository, bool is_deep);

}  // namespace shw
