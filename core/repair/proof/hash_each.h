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

// Each thing hashed by `find`, in order: map_across_ranks() without a text for each of millions.
// `costs`: of neighbours, as parallel_for_batched() and ScatterMapTask take them.
struct HashWork {
  std::string step;
  std::span<const std::uint64_t> costs;
  std::function<Result<Hash128>(std::size_t thing)> find;
  Progress* progress = nullptr;
};
Result<ItemHashes> hash_each(Team* team, const HashWork& work);

// Two numbers, as workers tell each other a hash.
void add_hash(Encoder& payload, const Hash128& hash);
Result<Hash128> take_hash(Decoder& payload);

}  // namespace shw
