// Calls of Linux by number. glibc 2.17 has no functions for them, and the wheel keeps to 2.17: the
// pip of RHEL 8 takes no wheel that says it needs more.
#pragma once

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace shw {

// renameat2(2) with RENAME_NOREPLACE.
inline int rename_to_new(const char* from, const char* to) {
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE));
}

inline ssize_t copy_file_range_in_kernel(int source, loff_t* in, int destination, loff_t* out,
                                         std::size_t length) {
  return ::syscall(SYS_copy_file_range, source, in, destination, out, length, 0u);
}

inline ssize_t random_bytes(void* out, std::size_t length) {
  return ::syscall(SYS_getrandom, out, length, 0u);
}

}  // namespace shw
