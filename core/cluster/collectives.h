// What all workers do together. Every worker hears every other one directly: a tree would need
// fewer messages, and the one who is silent in it would not be the one who is missed.
#pragma once

#include <vector>

#include "core/cluster/transport.h"

namespace shw {

// No worker goes on before all have come here.
Status barrier(Transport& transport, const WaitStep& step);

// What `root` has, to all. A message beyond `most` bytes is refused before anything is allocated.
Result<Bytes> broadcast(Transport& transport, int root, BytesView own, std::uint64_t most,
                        const WaitStep& step);

// A message for each worker, by rank, becomes a message of each worker, by rank. What goes to
// itself stays as it is. `most` as above, of all that comes together.
Result<std::vector<Bytes>> exchange(Transport& transport, std::vector<Bytes> to_each,
                                    std::uint64_t most, const WaitStep& step);

// The same message to all: what each worker has, by rank.
Result<std::vector<Bytes>> gather_all(Transport& transport, Bytes own, std::uint64_t most,
                                      const WaitStep& step);

enum class Reduction : std::uint8_t { kSum, kLeast, kGreatest };
// Number by number over all workers, who give as many; sums wrap.
Result<std::vector<std::uint64_t>> all_reduce(Transport& transport,
                                              std::vector<std::uint64_t> values,
                                              Reduction reduction, const WaitStep& step);

}  // namespace shw
