// Which run of parts a thread writes next: one of a file that as few others as possible write to.
// Linux holds a file's lock over each write, and threads that share a file wait for each other,
// spinning. Few files are begun at a time all the same: only those that are finished need not be
// made again after a kill.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/result.h"

namespace shw {

class FileTurns {
 public:
  // More files would let more threads write at once than disks take, and lose more to a kill.
  static constexpr std::size_t kMostFiles = 8;

  // `files`: that of each run; runs of one file follow each other. At most `at_once` files are
  // begun and not all taken.
  FileTurns(std::span<const std::uint32_t> files, std::size_t at_once);

  // The run that is begun now: each once, those of a file in order. There must be one left. From
  // several threads.
  std::size_t take();
  // It is written.
  void leave(std::size_t run);

 private:
  struct File {
    std::size_t next = 0, last = 0;  // its runs
    std::size_t writers = 0;
  };
  void admit();

  std::mutex guard_;
  std::vector<File> files_;            // in order
  std::vector<std::uint32_t> of_run_;  // index of files_
  std::vector<std::size_t> begun_;     // of files_, in order: those that have runs left
  std::size_t admitted_ = 0, at_once_;
};

// each_in_parallel() over runs of parts, dealt so; `files`: that of each run. Files that are made
// `in_order` are begun one after the other: how long decoded items are held follows from it.
Status each_in_turns(std::span<const std::uint32_t> files, bool in_order,
                     const std::function<Status(std::size_t run)>& write);

}  // namespace shw
