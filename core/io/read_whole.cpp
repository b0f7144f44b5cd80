#include "core/io/read_whole.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "core/base/words.h"
#include "core/io/posix_error.h"

namespace shw {
namespace {

bool is_pipe(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
}

Result<std::string> read_pipe(const std::string& path, std::uint64_t most) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> pipe(std::fopen(path.c_str(), "rbe"));
  if (!pipe) return system_error("cannot open it", path, errno);
  std::string text;
  for (std::array<char, 64 << 10> part;;) {
    const std::size_t size = std::fread(part.data(), 1, part.size(), pipe.get());
    if (size > most - text.size())
      return fail(ErrorKind::kDamaged,
                  fmt::format("is too large: at most {} of its kind are read", human_bytes(most)),
                  {path});
    text.append(part.data(), size);
    if (size == part.size()) continue;
    if (std::ferror(pipe.get()) != 0) return system_error("cannot read it", path, errno);
    return text;
  }
}

}  // namespace

Result<Bytes> read_whole(const ByteSource& source, std::uint64_t most) {
  if (source.size() > most)
    return fail(ErrorKind::kDamaged,
                fmt::format("is too large: the file has {}, and at most {} of its kind are read",
                            human_bytes(source.size()), human_bytes(most)),
                {source.name()});
  return read_bytes(source, 0, source.size());
}

Result<std::string> read_whole_text(const ByteSource& source, std::uint64_t most) {
  SHW_TRY(Bytes bytes, read_whole(source, most));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<std::string> read_whole_text(const std::string& path, std::uint64_t most) {
  if (is_pipe(path)) return read_pipe(path, most);
  SHW_TRY(auto source, open_file(path, path));
  return read_whole_text(*source, most);
}

}  // namespace shw
