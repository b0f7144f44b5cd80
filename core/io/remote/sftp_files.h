// A folder of another machine, by SFTP.
#pragma once

#include <memory>
#include <optional>

#include "core/io/remote/remote_files.h"
#include "core/io/remote/remote_path.h"
#include "core/io/remote/sftp_packet.h"

namespace shw {

// `is_deep`: with what lies in its folders; else its own names only.
Result<std::unique_ptr<RemoteFiles>> sftp_files(const RemotePlace& folder, bool is_deep);

// What lies at the place itself; nothing where nothing does.
Result<std::optional<SftpAttributes>> sftp_look(const RemotePlace& place);

}  // namespace shw
