#include "core/io/write_behind.h"

#include <fcntl.h>

namespace shw {
namespace {

// At most two blocks are in flight: a disk of 500 MB/s writes one in 30 ms.
constexpr off_t kBehindAtOnce = off_t{16} << 20;

}  // namespace

void WriteBehind::start_writeback_until(off_t end) {
  // These calls are only hints: fsync() writes everything that they do not.
  for (; end - begun_ >= kBehindAtOnce; begun_ += kBehindAtOnce) {
    static_cast<void>(::sync_file_range(fd_, begun_, kBehindAtOnce, SYNC_FILE_RANGE_WRITE));
    if (begun_ < kBehindAtOnce) continue;
    static_cast<void>(
        ::sync_file_range(fd_, begun_ - kBehindAtOnce, kBehindAtOnce, SYNC_FILE_RANGE_WAIT_BEFORE));
  }
}

}  // namespace shw
