#include "core/exec/file_scheduler.h"

#include <algorithm>
#include <cassert>

#include "core/base/parallel.h"

namespace shw {

FileScheduler::FileScheduler(std::span<const std::uint32_t> files, std::size_t at_once)
    : at_once_(std::clamp<std::size_t>(at_once, 1, kMaxFiles)) {
  of_run_.reserve(files.size());
  for (std::size_t run = 0; run < files.size(); ++run) {
    if (run == 0 || files[run] != files[run - 1]) files_.push_back({run, run, 0});
    ++files_.back().last;
    of_run_.push_back(static_cast<std::uint32_t>(files_.size() - 1));
  }
  start_more_files();
}

void FileScheduler::start_more_files() {
  while (begun_.size() < at_once_ && admitted_ < files_.size()) begun_.push_back(admitted_++);
}

std::size_t FileScheduler::take() {
  std::lock_guard lock(guard_);
  assert(!begun_.empty());
  const auto chosen = std::min_element(
      begun_.begin(), begun_.end(),
      [&](std::size_t a, std::size_t b) { return files_[a].writers < files_[b].writers; });
  File& file = files_[*chosen];
  ++file.writers;
  const std::size_t run = file.next++;
  if (file.next == file.last) {
    begun_.erase(chosen);
    start_more_files();
  }
  return run;
}

void FileScheduler::leave(std::size_t run) {
  std::lock_guard lock(guard_);
  --files_[of_run_[run]].writers;
}

Status parallel_for_by_file(std::span<const std::uint32_t> files, bool in_order,
                            const std::function<Status(std::size_t)>& write) {
  FileScheduler turns(files, in_order ? 1 : worker_count());
  return parallel_for(files.size(), [&](std::size_t) {
    const std::size_t run = turns.take();
    Status done = write(run);
    turns.leave(run);
    return done;
  });
}

}  // namespace shw
