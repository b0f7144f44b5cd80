// Whether a checkpoint's files could be read, as its opening findings say.
#pragma once

#include <algorithm>
#include <string>

#include "core/model/checkpoint.h"
#include "core/model/evidence.h"

namespace shw {

// True for a finding about a file that could not be read: what it holds is not known.
inline bool names_unread_file(const Finding& finding) {
  return find_evidence<std::string>(finding, "unread_file") != nullptr;
}

// False if a file is missing, damaged or was not read: a tensor that is not there may be in it.
inline bool are_all_files_read(const Checkpoint& checkpoint) {
  const auto files = checkpoint.files();
  const auto& findings = checkpoint.opening_findings();
  return std::none_of(files.begin(), files.end(),
                      [](const FileRow& file) {
                        return file.referenced && file.kind != EntryKind::kFile;
                      }) &&
         std::none_of(findings.begin(), findings.end(), makes_content_unknown);
}

}  // namespace shw
