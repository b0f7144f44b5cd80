// How often a person, or a signal, has asked this process to stop. Counted before
// Progress::cancelled is set, so that who sets that flag for a reason of its own, and takes it
// back, sees such a wish.
#pragma once

#include <atomic>

namespace shw {

inline std::atomic<unsigned> stop_wishes{0};

}  // namespace shw
