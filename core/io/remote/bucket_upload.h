// Sends a folder into a bucket (s3://, gs://): large files in parts, and what makes a loader take
// the folder for a checkpoint last, so that a half-sent one is none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

struct Uploaded {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  std::size_t kept = 0;  // of the files, those that an upload which was cut off had sent
};

// Files of `folder`, in the order in which they are sent: .metadata, indexes and certificates last.
std::vector<Entry> upload_order(std::vector<Entry> files);

// kUsage where `target` names no bucket, or where something lies below it; but an upload of the
// same folder that was cut off is gone on with. Each file is read once. At the end the bucket is
// listed, and every size compared. What was sent stays after an error.
Result<Uploaded> upload_folder(const Directory& folder, const std::string& target,
                               Progress* progress = nullptr);
// Of a folder that is still to be made: kUsage where anything lies below `target`.
Status check_upload_target(const std::string& target);

}  // namespace shw
