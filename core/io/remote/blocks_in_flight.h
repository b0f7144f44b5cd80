// Records which blocks of remote files are being fetched, so that threads that need the same block
// wait for one request instead of sending their own.
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
  // Ownership of blocks [first, end) of a file: no other thread fetches them while the Claim lives.
  class Claim {
   public:
    Claim(BlocksInFlight& in, std::uint64_t file, std::uint64_t first, std::uint64_t end)
        : in_(in), file_(file), first_(first), end_(end) {}
    ~Claim();
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    // Extends the claim to at most block `most`, but not into blocks claimed by other threads.
    // Returns the new end.
    std::uint64_t extend(std::uint64_t most);

   private:
    BlocksInFlight& in_;
    std::uint64_t file_, first_, end_;
  };

  // Returns null if it had to wait for another thread, which may have fetched the blocks: look in
  // the cache again. Waits 0.1 s at most.
  std::unique_ptr<Claim> claim_or_wait(std::uint64_t file, std::uint64_t first, std::uint64_t end);

 private:
  std::mutex guard_;
  std::condition_variable arrived_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> blocks_;  // (file, block)
};

}  // namespace shw
