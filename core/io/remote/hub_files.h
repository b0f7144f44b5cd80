// A repository of the Hugging Face hub, or of what speaks as it does (HF_ENDPOINT). The revision is
// resolved to a commit first, so that all files are of one commit.
#pragma once

#include <memory>

#include "core/io/remote/remote_files.h"
#include "core/io/remote/remote_path.h"

namespace shw {

std::unique_ptr<RemoteFiles> hub_files(RemotePlace repository);

}  // namespace shw
