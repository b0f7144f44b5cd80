// Hashes of many items at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/base/packed.h"
#include "core/base/progress.h"
#include "core/base/team.h"
#include "core/repair/proof/digests.h"

namespace shw {

// Each thing hashed by `find`, in order: find_each() without a text for each of millions. `costs`:
// of neighbours, as each_in_runs() and TeamWork take them.
struct HashWork {
  std::string step;
  std::span<const std::uint64_t> costs;
  std::function<Result<Hash128>(std::size_t thing)> find;
  Progress* progress = nullptr;
};
Result<ItemHashes> hash_each(Team* team, const HashWork& work);

// Two numbers, as workers tell each other a hash.
void add_hash(Packer& words, const Hash128& hash);
Result<Hash128> take_hash(Unpacker& words);

}  // namespace shw
