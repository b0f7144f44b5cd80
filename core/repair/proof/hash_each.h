// Hashes of many items at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/base/encoder.h"
#include "core/base/progress.h"
#include "core/base/team.h"
#include "core/repair/proof/digests.h"

namespace shw {

// Hashes many tasks with `find` and returns the hashes in order: like map_across_ranks(), without a
// text per hash. `costs` are as in parallel_for_batched() and ScatterMapTask.
struct HashWork {
  std::string step;
  std::span<const std::uint64_t> costs;
  std::function<Result<Hash128>(std::size_t thing)> find;
  Progress* progress = nullptr;
};
Result<ItemHashes> hash_across_ranks(Team* team, const HashWork& work);

// A hash as two numbers of a message between ranks.
void add_hash(Encoder& payload, const Hash128& hash);
Result<Hash128> decode_hash(Decoder& payload);

}  // namespace shw
