// A folder on another machine, over SFTP.
#pragma once

#include <memory>
#include <optional>

#include "core/io/remote/remote_files.h"
#include "core/io/remote/remote_path.h"
#include "core/io/remote/sftp_packet.h"

namespace shw {

// `is_deep`: includes files in subfolders; otherwise only direct entries.
Result<std::unique_ptr<RemoteFiles>> sftp_files(const RemotePlace& folder, bool is_deep);

// Attributes of the path itself; nullopt if it does not exist.
Result<std::optional<SftpAttributes>> sftp_attributes(const RemotePlace& place);

}  // namespace shw
