// Uploads a folder to a bucket (s3://, gs://), large files in parts. The files by which a loader
// recognises a checkpoint are sent last, so that a partial upload is not taken for one.
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
  std::size_t kept = 0;  // number of files that an interrupted upload had already sent
};

// Sorts files into the order of sending: .metadata, indexes and certificates last.
std::vector<Entry> upload_order(std::vector<Entry> files);

// kUsage if `target` names no bucket or if anything exists below it, except an interrupted upload
// of the same folder, which is resumed. Reads each file once. At the end it lists the bucket and
// compares every size. After an error the objects already sent are kept.
Result<Uploaded> upload_folder(const Directory& folder, const std::string& target,
                               Progress* progress = nullptr);
// Checks a target before the folder exists: kUsage if there are objects below `target`.
Status check_upload_target(const std::string& target);

}  // namespace shw
