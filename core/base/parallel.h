// Parallel loops over as many threads as this process may use.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/base/result.h"

namespace shw {

// The number of threads that parallel_for() uses.
std::size_t worker_count();

// Calls work(0) .. work(count - 1), started in this order. After an error no new call starts; of
// several errors the one with the lowest index is returned.
Status parallel_for(std::size_t count, const std::function<Status(std::size_t)>& work);

// Parallel loop without errors over ranges of `length` indices (the last may be shorter), for work
// that costs less than the scheduling of a single index.
void parallel_for_ranges(std::size_t count, std::size_t length,
                         const std::function<void(std::size_t first, std::size_t last)>& work);

// Parallel loop where work(i) holds held[i] bytes of memory: concurrent calls together hold at most
// `most` bytes. A call that needs more than `most` runs alone.
Status parallel_for_with_memory_budget(std::uint64_t most, std::span<const std::uint64_t> held,
                                       const std::function<Status(std::size_t)>& work);

// Pool of objects that are expensive to create. A thread gets the object it used last, whose read
// position may still fit; the pool creates at most one object per worker thread.
template <class T>
class Pool {
 public:
  explicit Pool(std::function<std::unique_ptr<T>()> make) : make_(std::move(make)) {}

  // Returns the object to the pool in its destructor.
  class Lease {
   public:
    Lease(Pool& pool, std::unique_ptr<T> held) : pool_(pool), held_(std::move(held)) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      std::lock_guard lock(pool_.guard_);
      pool_.idle_.push_back({std::this_thread::get_id(), std::move(held_)});
    }
    T& operator*() const { return *held_; }
    T* operator->() const { return held_.get(); }

   private:
    Pool& pool_;
    std::unique_ptr<T> held_;
  };

  Lease take() {
    std::unique_ptr<T> held;
    {
      std::lock_guard lock(guard_);
      auto found = std::find_if(idle_.begin(), idle_.end(), [](const Idle& idle) {
        return idle.last_user_thread == std::this_thread::get_id();
      });
      // Takes another thread's object only if every worker thread could already own one.
      if (found == idle_.end() && made_ >= worker_count()) found = idle_.begin();
      if (found != idle_.end()) {
        held = std::move(found->held);
        idle_.erase(found);
      } else {
        ++made_;
      }
    }
    if (held == nullptr) held = make_();
    return Lease(*this, std::move(held));
  }

 private:
  struct Idle {
    std::thread::id last_user_thread;
    std::unique_ptr<T> held;
  };
  std::function<std::unique_ptr<T>()> make_;
  std::mutex guard_;
  std::vector<Idle> idle_;
  std::size_t made_ = 0;
};

}  // namespace shw
