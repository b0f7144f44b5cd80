// Decides which thread writes to which file next.
#include "core/exec/file_scheduler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

using namespace shw;

TEST_CASE("Two threads write to two files while there are two") {
  const std::vector<std::uint32_t> files{7, 7, 7, 9, 9, 9};
  FileScheduler turns(files, 2);
  CHECK(turns.take() == 0);
  CHECK(turns.take() == 3);
  turns.leave(0);
  CHECK(turns.take() == 1);
  turns.leave(3);
  CHECK(turns.take() == 4);
  turns.leave(1);
  CHECK(turns.take() == 2);
  turns.leave(2);
  CHECK(turns.take() == 5);  // all of the first file is taken
}

TEST_CASE("A lone thread writes one file after the other") {
  const std::vector<std::uint32_t> files{0, 0, 1, 2, 2};
  FileScheduler turns(files, 1);
  for (std::size_t run = 0; run < files.size(); ++run) {
    CHECK(turns.take() == run);
    turns.leave(run);
  }
}

TEST_CASE("Every run has its turn once and each file its runs in order and few files are begun") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint32_t> files;
    const std::size_t file_count = 1 + random() % 20, threads = 1 + random() % 20;
    for (std::uint32_t file = 0; file < file_count; ++file)
      files.insert(files.end(), 1 + random() % 5, file);
    std::map<std::uint32_t, std::size_t> runs_of, written;
    for (std::uint32_t file : files) ++runs_of[file];

    FileScheduler turns(files, threads);
    std::vector<std::size_t> busy;
    std::set<std::size_t> taken;
    std::map<std::uint32_t, std::size_t> last;
    auto leave_one = [&] {
      const std::size_t at = random() % busy.size();
      ++written[files[busy[at]]];
      turns.leave(busy[at]);
      busy.erase(busy.begin() + static_cast<std::ptrdiff_t>(at));
    };
    while (taken.size() < files.size()) {
      if (busy.size() == threads) leave_one();
      const std::size_t run = turns.take();
      CHECK(taken.insert(run).second);
      if (last.count(files[run]) != 0) CHECK(last[files[run]] < run);
      last[files[run]] = run;
      busy.push_back(run);
      // Number of started files with runs left.
      std::map<std::uint32_t, std::size_t> begun;
      for (std::size_t one : taken) ++begun[files[one]];
      const auto open = std::count_if(begun.begin(), begun.end(), [&](const auto& file) {
        return file.second < runs_of[file.first];
      });
      CHECK(static_cast<std::size_t>(open) <= std::min(threads, FileScheduler::kMaxFiles));
    }
    while (!busy.empty()) leave_one();
    CHECK(written == runs_of);
  }
}
