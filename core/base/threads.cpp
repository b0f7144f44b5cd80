#include "core/base/threads.h"

#include <semaphore>
#include <system_error>
#include <vector>

namespace shw {

bool start_thread(std::thread& thread, std::function<void()> body) {
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

std::size_t count_startable_threads(std::size_t wanted) {
  std::counting_semaphore<> end(0);
  std::vector<std::thread> threads(wanted);
  std::size_t started = 0;
  while (started < wanted && start_thread(threads[started], [&] { end.acquire(); })) ++started;
  end.release(static_cast<std::ptrdiff_t>(started));
  for (std::size_t i = 0; i < started; ++i) threads[i].join();
  return started;
}

}  // namespace shw
