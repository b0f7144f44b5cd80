#include "core/io/remote/block_cache.h"

#include <algorithm>

namespace shw {

std::shared_ptr<const Bytes> BlockCache::find(std::uint64_t file, std::uint64_t block) {
  std::lock_guard lock(guard_);
  auto found = places_.find({file, block});
  if (found == places_.end()) return nullptr;
  order_.splice(order_.begin(), order_, found->second);
  return found->second->bytes;
}

void BlockCache::put(std::uint64_t file, std::uint64_t first, BytesView bytes) {
  std::lock_guard lock(guard_);
  for (std::uint64_t block = first; !bytes.empty(); ++block) {
    const BytesView part = bytes.first(std::min<std::size_t>(bytes.size(), kRemoteBlock));
    bytes = bytes.subspan(part.size());
    const Key key{file, block};
    if (places_.contains(key)) continue;
    order_.push_front({key, std::make_shared<const Bytes>(part.begin(), part.end())});
    places_[key] = order_.begin();
    held_ += part.size();
  }
  while (held_ > most_ && !order_.empty()) {
    held_ -= order_.back().bytes->size();
    places_.erase(order_.back().key);
    order_.pop_back();
  }
}

}  // namespace shw
