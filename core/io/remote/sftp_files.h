// A folder on another machine, over SFTP.
#pragma once

#include <memory>
#include <optional>

#include "core/io/remote/remote_files.h"
#include "core/io/remote/remote_path.h"
#include "core/io/remote/sftp_packet.h"

namespace shw {

class SftpClient;

// The connection to the host of the place. Logging in takes several round trips, so all calls for a
// host share its connection while one of them, or the caller, holds it.
Result<std::shared_ptr<SftpClient>> sftp_connection(const RemotePlace& place);

// `is_deep`: includes files in subfolders; otherwise only direct entries.
Result<std::unique_ptr<RemoteFiles>> sftp_files(const RemotePlace& folder, bool is_deep);

// Attributes of the path itself; nullopt if it does not exist. A lost connection is replaced.
Result<std::optional<SftpAttributes>> sftp_attributes(const RemotePlace& place,
                                                      std::shared_ptr<SftpClient>& connection);

}  // namespace shw
