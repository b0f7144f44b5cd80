#include "core/io/remote/blocks_in_flight.h"

#include <chrono>

namespace shw {
namespace {

// A reader that is to stop must not wait for the server of another reader.
constexpr std::chrono::milliseconds kLongestWait(100);

}  // namespace

BlocksInFlight::Claim::~Claim() {
  {
    std::lock_guard lock(in_.guard_);
    in_.blocks_.erase(in_.blocks_.lower_bound({file_, first_}),
                      in_.blocks_.lower_bound({file_, end_}));
  }
  in_.arrived_.notify_all();
}

std::uint64_t BlocksInFlight::Claim::extend(std::uint64_t most) {
  std::lock_guard lock(in_.guard_);
  while (end_ < most && in_.blocks_.insert({file_, end_}).second) ++end_;
  return end_;
}

std::unique_ptr<BlocksInFlight::Claim> BlocksInFlight::claim_or_wait(std::uint64_t file,
                                                                     std::uint64_t first,
                                                                     std::uint64_t end) {
  std::unique_lock lock(guard_);
  const auto taken = blocks_.lower_bound({file, first});
  if (taken != blocks_.end() && *taken < std::pair{file, end}) {
    const auto waited_for = *taken;
    arrived_.wait_for(lock, kLongestWait, [&] { return !blocks_.contains(waited_for); });
    return nullptr;
  }
  for (std::uint64_t block = first; block < end; ++block) blocks_.insert({file, block});
  return std::make_unique<Claim>(*this, file, first, end);
}

}  // namespace shw
