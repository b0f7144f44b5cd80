// Which blocks of remote files are being fetched, so that threads that need the same ones wait for
// one request instead of sending their own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

namespace shw {

class BlocksInFlight {
 public:
  // Blocks [first, end) of a file, which no other thread fetches while it lives.
  class Claim {
   public:
    Claim(BlocksInFlight& in, std::uint64_t file, std::uint64_t first, std::uint64_t end)
        : in_(in), file_(file), first_(first), end_(end) {}
    ~Claim();
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    // Takes blocks that follow too, at most up to `most` and no further than what others fetch.
    // The new end.
    std::uint64_t extend(std::uint64_t most);

   private:
    BlocksInFlight& in_;
    std::uint64_t file_, first_, end_;
  };

  // Null where another thread was fetching one of them and has ended: they may be there now.
  std::unique_ptr<Claim> claim_or_wait(std::uint64_t file, std::uint64_t first, std::uint64_t end);

 private:
  std::mutex guard_;
  std::condition_variable arrived_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> blocks_;  // (file, block)
};

}  // namespace shw
