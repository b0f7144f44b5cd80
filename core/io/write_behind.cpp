#include "core/io/write_behind.h"

#include <fcntl.h>

namespace shw {
namespace {

// At most two blocks are in flight: a disk of 500 MB/s writes one in 30 ms.
constexpr off_t kMaxWritebackBytes = off_t{16} << 20;

}  // namespace

void WriteBehind::start_writeback_until(off_t end) {
  // These calls are only hints: fsync() writes everything that they do not.
  for (; end - begun_ >= kMaxWritebackBytes; begun_ += kMaxWritebackBytes) {
    static_cast<void>(::sync_file_range(fd_, begun_, kMaxWritebackBytes, SYNC_FILE_RANGE_WRITE));
    if (begun_ < kMaxWritebackBytes) continue;
    static_cast<void>(::sync_file_range(fd_, begun_ - kMaxWritebackBytes, kMaxWritebackBytes,
                                        SYNC_FILE_RANGE_WAIT_BEFORE));
  }
}

}  // namespace shw
