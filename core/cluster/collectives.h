// Collective operations over all ranks. Every rank receives from every other rank directly: a tree
// would need fewer messages, but a silent rank in it would be blamed on its parent.
#pragma once

#include <vector>

#include "core/cluster/transport.h"

namespace shw {

// Blocks until all ranks have called it.
Status barrier(Transport& transport, const WaitStep& step);

// Sends the bytes of `root` to all ranks. More than `most` bytes are refused before allocation.
Result<Bytes> broadcast(Transport& transport, int root, BytesView own, std::uint64_t most,
                        const WaitStep& step);

// Sends to_each[r] to rank r; returns the received messages by rank. The message to the own rank is
// kept as it is. `most` bounds the total bytes received from all ranks.
Result<std::vector<Bytes>> exchange(Transport& transport, std::vector<Bytes> to_each,
                                    std::uint64_t most, const WaitStep& step);

// Sends the same message to all ranks; returns the messages of all ranks, by rank.
Result<std::vector<Bytes>> all_gather(Transport& transport, Bytes own, std::uint64_t most,
                                      const WaitStep& step);

}  // namespace shw
