// Destroys what a job no longer needs on a separate thread: freeing a million small objects takes
// 0.1 s, for which the user would have to wait.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

namespace shw {

template <class Things>
void destroy_in_background(Things things) {
  try {
    std::thread([kept = std::move(things)] {}).detach();
  } catch (const std::system_error&) {  // no thread available: `things` is destroyed on this thread
  }
}

}  // namespace shw
