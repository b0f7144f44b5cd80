#include "core/base/parallel_batches.h"

#include <algorithm>
#include <vector>

#include "core/base/parallel.h"

namespace shw {

Status parallel_for_batched(std::span<const std::uint64_t> costs,
                            const std::function<Status(std::size_t)>& work) {
  constexpr std::uint64_t kRunBytes = std::uint64_t{1} << 20;
  // Batches are small if there are few items, so that every thread gets some.
  const std::size_t most = std::clamp<std::size_t>(costs.size() / (8 * worker_count()), 1, 256);
  std::vector<std::size_t> begins;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const bool joins =
        !begins.empty() && i - begins.back() < most && bytes < kRunBytes && costs[i] < kRunBytes;
    if (!joins) begins.push_back(i);
    bytes = (joins ? bytes : 0) + std::min(costs[i], kRunBytes);
  }
  return parallel_for(begins.size(), [&](std::size_t run) -> Status {
    const std::size_t end = run + 1 < begins.size() ? begins[run + 1] : costs.size();
    for (std::size_t i = begins[run]; i < end; ++i) SHW_CHECK(work(i));
    return {};
  });
}

}  // namespace shw
