// The same work on many things, on as many threads as this process may use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
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

// What threads use in turns and is dear to make: as many as were ever in use at once.
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
      pool_.idle_.push_back(std::move(held_));
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
      if (!idle_.empty()) {
        held = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (held == nullptr) held = make_();
    return Lease(*this, std::move(held));
  }

 private:
  std::function<std::unique_ptr<T>()> make_;
  std::mutex guard_;
  std::vector<std::unique_ptr<T>> idle_;
};

}  // namespace shw
