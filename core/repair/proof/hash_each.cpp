#include "core/repair/proof/hash_each.h"

#include "core/base/encoder.h"
#include "core/base/parallel_batches.h"

namespace shw {

void add_hash(Encoder& payload, const Hash128& hash) {
  payload.add(hash.high);
  payload.add(hash.low);
}

Result<Hash128> decode_hash(Decoder& payload) {
  Hash128 hash;
  SHW_TRY(hash.high, payload.number());
  SHW_TRY(hash.low, payload.number());
  return hash;
}

Result<ItemHashes> hash_across_ranks(Team* team, const HashWork& work) {
  ItemHashes hashes(work.costs.size());
  if (team == nullptr) {
    SHW_CHECK(parallel_for_batched(work.costs, [&](std::size_t i) -> Status {
      if (is_cancelled(work.progress)) return cancelled_error();
      SHW_TRY(hashes[i], work.find(i));
      return {};
    }));
    return hashes;
  }
  ScatterMapTask dealt{work.step, work.costs, {}, {}, work.progress};
  dealt.find = [&](std::size_t i) -> Result<Bytes> {
    if (is_cancelled(work.progress)) return cancelled_error();
    SHW_TRY(Hash128 hash, work.find(i));
    Encoder payload;
    add_hash(payload, hash);
    return payload.take();
  };
  dealt.receive = [&](std::size_t i, BytesView found) -> Status {
    Decoder payload(found);
    SHW_TRY(hashes[i], decode_hash(payload));
    return {};
  };
  SHW_CHECK(scatter_map_allgather(*team, dealt));
  return hashes;
}

}  // namespace shw
