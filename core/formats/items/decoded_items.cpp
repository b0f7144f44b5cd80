#include "core/formats/items/decoded_items.h"

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/parallel.h"

namespace shw {

std::uint64_t decoding_bytes(const Checkpoint& input, ChunkId chunk, std::uint64_t elements_bytes) {
  auto item = input.item(chunk);
  auto stored = item ? narrow<std::uint64_t>(item->length) : std::nullopt;
  auto twice = checked_mul(elements_bytes, std::uint64_t{2});
  return checked_add(twice.value_or(UINT64_MAX), stored.value_or(0)).value_or(UINT64_MAX);
}

bool DecodedItems::has_room_for(const Checkpoint& input, ChunkId chunk,
                                std::uint64_t length) const {
  const std::size_t holders = use_ == Use::kOneThread ? 1 : 2 * worker_count();
  return decoding_bytes(input, chunk, length) <= budget_ / holders;
}

// Requires the lock. Drops unused items, oldest first.
bool DecodedItems::make_room(std::uint64_t needed) {
  while (taken_ + needed > budget_) {
    auto oldest = items_.end();
    for (auto it = items_.begin(); it != items_.end(); ++it) {
      bool idle = it->second.bytes != nullptr && it->second.users == 0;
      bool older = oldest == items_.end() || it->second.last_used < oldest->second.last_used;
      if (idle && older) oldest = it;
    }
    if (oldest == items_.end()) return false;
    taken_ -= oldest->second.taken;
    items_.erase(oldest);
  }
  return true;
}

// Requires the lock.
std::shared_ptr<const Bytes> DecodedItems::pin_item(Item& item) {
  ++item.users;
  item.last_used = ++clock_;
  return {item.bytes.get(), [this, &item](const Bytes*) {
            std::lock_guard lock(guard_);
            --item.users;
            changed_.notify_all();
          }};
}

Result<std::shared_ptr<const Bytes>> DecodedItems::read(const Checkpoint& input, ChunkId chunk,
                                                        std::uint64_t length) {
  std::uint64_t needed = decoding_bytes(input, chunk, length);
  // Items above the budget are normally decoded to disk; a direct request must still not block for
  // ever.
  if (needed > budget_) needed = budget_;
  Key key{&input, chunk};
  std::unique_lock lock(guard_);
  while (true) {
    auto found = items_.find(key);
    if (found != items_.end() && found->second.bytes != nullptr) return pin_item(found->second);
    if (found == items_.end() && make_room(needed)) break;
    changed_.wait(lock);
  }
  Item& item = items_[key];
  item.taken = needed;
  taken_ += needed;
  peak_ = std::max(peak_, taken_);
  lock.unlock();
  auto bytes = decode_item(input, chunk, length, progress_,
                           use_ == Use::kOneThread ? DecodedAs::kAny : DecodedAs::kAsRecordedForm);
  lock.lock();
  changed_.notify_all();
  taken_ -= needed;
  if (!bytes) {
    items_.erase(key);
    return tl::unexpected<Error>(std::move(bytes).error());
  }
  item.taken = bytes->size();
  taken_ += item.taken;
  item.bytes = std::make_unique<const Bytes>(std::move(*bytes));
  return pin_item(item);
}

void DecodedItems::drop(const Checkpoint& input, ChunkId chunk) {
  std::lock_guard lock(guard_);
  auto found = items_.find({&input, chunk});
  if (found == items_.end() || found->second.bytes == nullptr || found->second.users != 0) return;
  taken_ -= found->second.taken;
  items_.erase(found);
  changed_.notify_all();
}

std::uint64_t DecodedItems::peak_bytes() const {
  std::lock_guard lock(guard_);
  return peak_;
}

}  // namespace shw
