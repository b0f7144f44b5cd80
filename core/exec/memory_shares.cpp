#include "core/exec/memory_shares.h"

#include <algorithm>

#include "core/base/parallel.h"

namespace shw {
namespace {

// Least slab size: one element of the widest dtype.
constexpr std::uint64_t kMinSlab = 16;

}  // namespace

MemoryPlan plan_memory(const Program& program, const std::vector<const Checkpoint*>& inputs,
                       std::uint64_t memory, std::size_t workers, std::span<const OutputId> order,
                       const SlabLimits& most) {
  // Half of the memory for messages: sent to each rank, received, and received data being
  // written.
  std::uint64_t round_bytes = 0;
  if (workers > 1) {
    round_bytes = std::max(memory / 2 / (workers + 1), kMinSlab);
    memory -= memory / 2;
  }
  const std::uint64_t slabs = 2 * worker_count();  // input and output slab of each thread
  const bool decodes = needs_decoded_items(program);
  MemoryPlan shares;
  SlabLimits& limits = shares.limits = most;
  const std::uint64_t share = (decodes ? memory / 2 : memory) / slabs;
  limits.slab_bytes = std::clamp(share, kMinSlab, limits.slab_bytes);
  limits.turned_bytes =
      decodes ? limits.slab_bytes : std::clamp(share, kMinSlab, limits.turned_bytes);
  if (workers > 1) {
    limits.slab_bytes = std::min(limits.slab_bytes, round_bytes);
    // Enough for every thread to have work in each round.
    limits.turned_bytes = std::clamp(round_bytes / worker_count(), limits.slab_bytes,
                                     std::max(limits.turned_bytes, limits.slab_bytes));
  }
  shares.round_bytes = round_bytes;
  // Decoded items keep their half.
  limits.in_flight_bytes = decodes ? 2 * limits.turned_bytes : memory / worker_count();
  std::uint64_t taken = slabs * limits.turned_bytes;
  shares.decoded_bytes = memory - std::min(taken, memory);
  shares.decoded =
      plan_spill(program, inputs, order, {shares.decoded_bytes, worker_count(), workers == 1});
  return shares;
}

}  // namespace shw
