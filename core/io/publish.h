// What is finished gets its name in one step; a half-made folder goes away: a part of
// posix_store.cpp, and of those whose library writes a file itself.
#pragma once

#include <string>

#include "core/base/result.h"

namespace shw {

// rename(2) of a finished directory to its final name (RENAME_NOREPLACE), then fsync of the parent.
Status publish_directory(const std::string& temporary, const std::string& final_path);

// A file that is written under a name that nobody can foresee, beside the final one; it is removed
// with this unless it was published.
class HalfMadeFile {
 public:
  explicit HalfMadeFile(const std::string& final_path);
  HalfMadeFile(const HalfMadeFile&) = delete;
  HalfMadeFile& operator=(const HalfMadeFile&) = delete;
  ~HalfMadeFile();
  const std::string& path() const { return path_; }
  std::string name() const;  // in its folder
  // Its bytes are made durable, and then it gets its name, which nothing has yet.
  Status publish();
  // The same in place of the file that has that name, whose rights it gets. Refuses (kUsage) to
  // replace anything but a file.
  Status replace();

 private:
  std::string final_path_, path_;
};

// Removes it with all below; refuses anything whose name does not hold `marker`.
Status discard_directory(const std::string& path, const std::string& marker);

}  // namespace shw
