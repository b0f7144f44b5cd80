// Verifies the list of file hashes that Megatron-LM writes next to a checkpoint
// (--verify-integrity, PR #4305).
//
//   integrity.json   {"algorithm": "sha256", "files": {name: 64 hex digits}}
//
// Names refer to files in the checkpoint's folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/team.h"
#include "core/facts/depth.h"
#include "core/model/checkpoint.h"

namespace shw {

inline constexpr const char* kIntegrityFile = "integrity.json";

struct FileHash {
  std::string name, expected, actual;
};

struct Integrity {
  std::optional<Error> unusable;                  // the list exists but cannot be used
  std::size_t listed = 0;                         // number of listed files
  std::vector<std::string> names_outside_folder;  // names that leave the folder: never opened
  std::vector<std::string> missing;               // listed files that do not exist
  std::vector<FileHash> differing;
  std::vector<std::string> unread;      // files that could not be read completely
  std::vector<std::string> unlisted;    // files in use that the list lacks
  std::size_t unhashed_file_count = 0;  // listed files that were not hashed, below Depth::kData
  std::uint64_t hashed_bytes = 0;
};

// nullopt if there is no such list. Hashes are computed at Depth::kData, several files at once on
// all cores and by all members of a team. The only error is cancellation.
Result<std::optional<Integrity>> read_integrity(const Checkpoint& checkpoint, Depth depth,
                                                Progress* progress, Team* team = nullptr);

// Creates such a list for files of a folder, as Megatron-LM writes it.
Result<std::string> make_integrity_list(const Directory& folder,
                                        const std::vector<std::string>& files, Progress* progress);

}  // namespace shw
