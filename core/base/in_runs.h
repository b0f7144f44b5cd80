// The same work on many things that lie one behind another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/base/result.h"

namespace shw {

// each_in_parallel() in runs of neighbours: each run is one thread's, a MiB of these costs or 256
// things long. Threads that took neighbours in turns would all read what lies around theirs.
Status each_in_runs(std::span<const std::uint64_t> costs,
                    const std::function<Status(std::size_t)>& work);

}  // namespace shw
