// What a job that was cancelled leaves behind is taken apart on a thread of its own: a million
// small things take a tenth of a second, for which nobody has to wait.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

namespace shw {

template <class Things>
void leave_behind(Things things) {
  try {
    std::thread([kept = std::move(things)] {}).detach();
  } catch (const std::system_error&) {  // no thread is to be had: then it is done here
  }
}

}  // namespace shw
