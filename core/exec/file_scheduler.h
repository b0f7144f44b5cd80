// Schedules which run of parts a thread writes next: one in a file with as few writers as
// possible. Linux locks a file during each write, and threads that share a file spin on the
// lock. The number of open files is limited too, because after a kill only finished files can be
// kept.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/result.h"

namespace shw {

class FileScheduler {
 public:
  // More files allow more parallel writes than disks sustain, and lose more after a kill.
  static constexpr std::size_t kMaxFiles = 8;

  // `files`: the file of each run; runs of one file are contiguous. At most `at_once` files have
  // both started and unstarted runs.
  FileScheduler(std::span<const std::uint32_t> files, std::size_t at_once);

  // The next run; each is returned once, those of a file in order. There must be one left.
  // Thread-safe.
  std::size_t take();
  // Marks the run as written.
  void leave(std::size_t run);

 private:
  struct File {
    std::size_t next = 0, last = 0;  // the runs of the file that are left
    std::size_t writers = 0;
  };
  void start_more_files();

  std::mutex guard_;
  std::vector<File> files_;            // in order
  std::vector<std::uint32_t> of_run_;  // index in files_
  std::vector<std::size_t> begun_;     // indices in files_ of started files that have runs left
  std::size_t admitted_ = 0, at_once_;
};

// parallel_for() over runs of parts in the order of FileScheduler; `files`: the file of each run.
// With `in_order` files start one after another, so that decoded items are kept briefly.
Status parallel_for_by_file(std::span<const std::uint32_t> files, bool in_order,
                            const std::function<Status(std::size_t run)>& write);

}  // namespace shw
