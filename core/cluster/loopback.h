// A transport between threads of one process, for tests.
#pragma once

#include <functional>
#include <vector>

#include "core/cluster/transport.h"

namespace shw {

struct LoopbackOptions {
  // One rank runs at a time and yields in rank order when it has to wait, so that two runs do the
  // same in the same order. A deadlock is detected at once.
  bool fixed_order = false;
};

// Runs `work` on `size` threads, each with its own transport, until all have ended; returns one
// status per rank. A rank that ends with an error, or while others wait for it, ends all.
std::vector<Status> run_on_threads(int size, const LoopbackOptions& options,
                                   const std::function<Status(Transport&)>& work);

}  // namespace shw
