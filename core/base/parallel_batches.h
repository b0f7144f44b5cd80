// Parallel loop over many small items that are adjacent in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/base/result.h"

namespace shw {

// parallel_for() over batches of adjacent items: each batch is one thread's, with costs of 1 MiB or
// 256 items. If threads alternated between neighbours, each would read the same file blocks.
Status parallel_for_batched(std::span<const std::uint64_t> costs,
                            const std::function<Status(std::size_t)>& work);

}  // namespace shw
