// Publishes a finished file or directory under its final name in one step, and deletes unfinished
// directories. Used by posix_store.cpp and for libraries that write files themselves.
#pragma once

#include <string>

#include "core/base/result.h"

namespace shw {

// Renames a finished directory (RENAME_NOREPLACE) and syncs its parent folder. Only an empty folder
// is replaced.
Status publish_directory(const std::string& temporary, const std::string& final_path);

// True for an empty folder that rename(2) can replace: not a link, not a mount point, not ".".
bool is_replaceable_folder(const std::string& path);

// A file written under an unpredictable temporary name in the folder of its final name. The
// destructor deletes the file unless it was published.
class TempFile {
 public:
  explicit TempFile(const std::string& final_path);
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile();
  const std::string& path() const { return path_; }
  std::string name() const;  // without the folder
  // Makes the file durable and renames it to its final name, which must not exist.
  Status publish();
  // As publish(), but replaces an existing file and takes over its permissions. Refuses (kUsage) to
  // replace anything that is not a regular file.
  Status replace();

 private:
  std::string final_path_, path_;
};

// Deletes a directory tree; refuses any whose name does not contain `marker`.
Status discard_directory(const std::string& path, const std::string& marker);

}  // namespace shw
