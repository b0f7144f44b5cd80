// A folder for one test, deleted with its contents when the test ends.
#pragma once

#include <fcntl.h>
#include <linux/fs.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace shw {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "shw-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

inline void put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// True if two files on the folder's file system may share blocks, whose bytes a copy does not read.
inline bool shares_bytes(const TemporaryFolder& folder) {
  put(folder / "shared-from", std::string(1 << 16, 'x'));
  const int from = ::open((folder / "shared-from").c_str(), O_RDONLY | O_CLOEXEC);
  const int to = ::open((folder / "shared-to").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const bool is_shared = ::ioctl(to, FICLONE, from) == 0;
  ::close(from);
  ::close(to);
  std::filesystem::remove(folder / "shared-from");
  std::filesystem::remove(folder / "shared-to");
  return is_shared;
}

}  // namespace shw
