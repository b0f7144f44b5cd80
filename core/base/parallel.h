// The same work on many things, on as many threads as this process may use.
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

// As many threads as each_in_parallel() works on.
std::size_t worker_count();

// Calls work(0) .. work(count - 1), begun in this order. After an error nothing new is begun; of
// several errors that of the lowest index is returned.
Status each_in_parallel(std::size_t count, const std::function<Status(std::size_t)>& work);

// The same where nothing can fail, by ranges of `length` and a shorter last one: what is done with
// each of them costs less than dealing it out.
void each_range(std::size_t count, std::size_t length,
                const std::function<void(std::size_t first, std::size_t last)>& work);

// The same where work(i) holds held[i] bytes: what is worked on at once holds no more than `most`
// together. What holds more by itself is worked on alone.
Status each_within(std::uint64_t most, std::span<const std::uint64_t> held,
                   const std::function<Status(std::size_t)>& work);

// What threads use in turns and is dear to make. A thread gets the one that it had last, which may
// stand where it goes on reading; there are no more than threads that work at once.
template <class T>
class Pool {
 public:
  explicit Pool(std::function<std::unique_ptr<T>()> make) : make_(std::move(make)) {}

  // Gives it back when it goes.
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
        return idle.had_by == std::this_thread::get_id();
      });
      // That of another thread only where every thread that may work could have one.
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
    std::thread::id had_by;
    std::unique_ptr<T> held;
  };
  std::function<std::unique_ptr<T>()> make_;
  std::mutex guard_;
  std::vector<Idle> idle_;
  std::size_t made_ = 0;
};

}  // namespace shw
