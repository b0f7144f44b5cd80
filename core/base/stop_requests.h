// Number of times that a user or a signal has asked this process to stop. It is increased before
// Progress::cancelled is set, so that code that sets and clears that flag for its own reasons can
// detect a real stop request.
#pragma once

#include <atomic>

namespace shw {

inline std::atomic<unsigned> stop_requests{0};

}  // namespace shw
