// Workers that are threads of this process.
#pragma once

#include <functional>
#include <vector>

#include "core/cluster/transport.h"

namespace shw {

struct LoopbackOptions {
  // One worker runs at a time, and hands over in the order of ranks where it has to wait: the same
  // run twice does the same things in the same order. That nobody can go on is known at once.
  bool fixed_order = false;
};

// Runs `work` on `size` threads, each with a transport of its own, until all have ended; what
// became of each, by rank. One that ends with an error, or while others wait for it, ends them all.
std::vector<Status> run_on_threads(int size, const LoopbackOptions& options,
                                   const std::function<Status(Transport&)>& work);

}  // namespace shw
