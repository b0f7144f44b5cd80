#include "core/io/posix_copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/io/system_calls.h"
#include "core/io/write_behind.h"

namespace shw {
namespace {

// Bytes between two checks for cancellation: 10 ms on a disk of 100 MB/s.
constexpr std::size_t kStep = std::size_t{1} << 20;

struct Copy {
  int source;
  int destination;
  const std::string& name;
  const ExtentVisitor* passing;
  Progress* progress;
  WriteBehind behind{destination};
  // Use copy_file_range until it fails once; a reader of the bytes needs them in memory.
  bool in_kernel = passing == nullptr;
  std::vector<std::byte> buffer = {};
};

tl::unexpected<Error> copy_error(const char* doing, const std::string& file, off_t offset) {
  return fail(ErrorKind::kIo, std::string(doing) + ": " + std::strerror(errno),
              {file, static_cast<std::uint64_t>(offset)});
}

void report(const Copy& copy, off_t bytes) {
  if (copy.progress != nullptr) copy.progress->add(static_cast<std::uint64_t>(bytes));
}

// Bytes copied; 0 if the kernel does not support it here (other file system, old kernel).
ssize_t copy_step_in_kernel(const Copy& copy, off_t at, std::size_t length) {
  loff_t in = at, out = at;
  ssize_t copied;
  do {
    copied = copy_file_range_in_kernel(copy.source, &in, copy.destination, &out, length);
  } while (copied < 0 && errno == EINTR);
  bool real = errno == ENOSPC || errno == EIO || errno == EDQUOT || errno == EFBIG;
  return copied < 0 && !real ? 0 : copied;
}

Status copy_step_in_user_space(Copy& copy, off_t at, std::size_t length) {
  copy.buffer.resize(std::min(length, std::size_t{1} << 20));
  std::size_t done = 0;
  while (done < length) {
    off_t place = at + static_cast<off_t>(done);
    ssize_t got = ::pread(copy.source, copy.buffer.data(),
                          std::min(copy.buffer.size(), length - done), place);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return copy_error("cannot read", copy.name, place);
    if (got == 0) {
      return fail(ErrorKind::kIo, "became shorter while it was copied",
                  {copy.name, static_cast<std::uint64_t>(place)});
    }
    if (copy.passing != nullptr)
      SHW_CHECK(copy.passing->bytes(BytesView(copy.buffer).first(static_cast<std::size_t>(got))));
    for (ssize_t put = 0; put < got;) {
      ssize_t wrote = ::pwrite(copy.destination, copy.buffer.data() + put,
                               static_cast<std::size_t>(got - put), place + put);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return copy_error("cannot write the copy", copy.name, place + put);
      put += wrote;
    }
    done += static_cast<std::size_t>(got);
  }
  return {};
}

Status copy_range(Copy& copy, off_t begin, off_t end) {
  while (begin < end) {
    if (is_cancelled(copy.progress)) return cancelled_error();
    std::size_t length = std::min(kStep, static_cast<std::size_t>(end - begin));
    ssize_t copied = copy.in_kernel ? copy_step_in_kernel(copy, begin, length) : 0;
    if (copied < 0) return copy_error("cannot write the copy", copy.name, begin);
    if (copied == 0) {
      copy.in_kernel = false;
      SHW_CHECK(copy_step_in_user_space(copy, begin, length));
      copied = static_cast<ssize_t>(length);
    }
    report(copy, copied);
    begin += copied;
    copy.behind.start_writeback_until(begin);
  }
  return {};
}

Status copy_data(Copy& copy, off_t size) {
  off_t at = 0;
  while (at < size) {
    off_t data = ::lseek(copy.source, at, SEEK_DATA);
    // ENXIO: a hole up to the end. Other errors: holes unknown, treat all as data.
    off_t begin = data < 0 ? (errno == ENXIO ? size : at) : std::min(data, size);
    off_t hole = begin < size ? ::lseek(copy.source, begin, SEEK_HOLE) : size;
    off_t end = hole <= begin ? size : std::min(hole, size);
    report(copy, begin - at);
    if (copy.passing != nullptr && begin > at)
      SHW_CHECK(copy.passing->hole(static_cast<std::uint64_t>(begin - at)));
    SHW_CHECK(copy_range(copy, begin, end));
    at = end;
  }
  return {};
}

}  // namespace

Result<bool> copy_whole_file(int source, int destination, const std::string& name,
                             const ExtentVisitor* passing, Progress* progress) {
  struct stat status {};
  if (::fstat(source, &status) != 0) return copy_error("cannot look at it", name, 0);
  if (!S_ISREG(status.st_mode)) return fail(ErrorKind::kIo, "is not a regular file", {name});
  if (is_cancelled(progress)) return cancelled_error();
  Copy copy{source, destination, name, passing, progress};
  const bool is_shared = ::ioctl(destination, FICLONE, source) == 0;
  if (is_shared) {
    report(copy, status.st_size);
  } else {
    SHW_CHECK(copy_data(copy, status.st_size));
    if (::ftruncate(destination, status.st_size) != 0)
      return copy_error("cannot set the length of the copy", name, status.st_size);
  }
  if (::fchmod(destination, status.st_mode & 0777) != 0)
    return copy_error("cannot set the mode of the copy", name, 0);
  const timespec times[2] = {status.st_atim, status.st_mtim};
  if (::futimens(destination, times) != 0)
    return copy_error("cannot set the time of the copy", name, 0);
  if (is_cancelled(progress)) return cancelled_error();
  if (::fsync(destination) != 0) return copy_error("cannot make the copy durable", name, 0);
  return passing != nullptr && !is_shared;
}

}  // namespace shw
