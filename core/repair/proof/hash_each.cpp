#include "core/repair/proof/hash_each.h"

#include "core/base/in_runs.h"
#include "core/base/packed.h"

namespace shw {

void add_hash(Packer& words, const Hash128& hash) {
  words.add(hash.high);
  words.add(hash.low);
}

Result<Hash128> take_hash(Unpacker& words) {
  Hash128 hash;
  SHW_TRY(hash.high, words.number());
  SHW_TRY(hash.low, words.number());
  return hash;
}

Result<ItemHashes> hash_each(Team* team, const HashWork& work) {
  ItemHashes hashes(work.costs.size());
  if (team == nullptr) {
    SHW_CHECK(each_in_runs(work.costs, [&](std::size_t i) -> Status {
      if (is_cancelled(work.progress)) return cancelled_error();
      SHW_TRY(hashes[i], work.find(i));
      return {};
    }));
    return hashes;
  }
  TeamWork dealt{work.step, work.costs, {}, {}, work.progress};
  dealt.find = [&](std::size_t i) -> Result<Bytes> {
    if (is_cancelled(work.progress)) return cancelled_error();
    SHW_TRY(Hash128 hash, work.find(i));
    Packer words;
    add_hash(words, hash);
    return words.take();
  };
  dealt.hear = [&](std::size_t i, BytesView found) -> Status {
    Unpacker words(found);
    SHW_TRY(hashes[i], take_hash(words));
    return {};
  };
  SHW_CHECK(each_in_team(*team, dealt));
  return hashes;
}

}  // namespace shw
