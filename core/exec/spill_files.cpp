#include "core/exec/spill_files.h"

#include <algorithm>

#include "core/formats/items/decoded_items.h"

namespace shw {

SpillFiles::SpillFiles(const Program& program, std::vector<const Checkpoint*> inputs,
                       const SpillPlan& places, MakeScratch make, Progress* progress)
    : program_(program),
      inputs_(std::move(inputs)),
      make_(std::move(make)),
      progress_(progress),
      ahead_(places.ahead) {
  for (SourceId source : places.on_disk) {
    at_.emplace(source, items_.size());
    items_.push_back({source});
  }
}

// The next item that no thread has requested yet. The lock must be held.
SpillFiles::Item* SpillFiles::next_item_to_decode() {
  for (std::size_t i = asked_, seen = 0; i < items_.size() && seen < ahead_; ++i) {
    seen += items_[i].is_expected ? 1 : 0;
    if (items_[i].is_expected && items_[i].state == State::kNot) return &items_[i];
  }
  return nullptr;
}

Result<std::shared_ptr<const ByteSource>> SpillFiles::decoded(SourceId id) const {
  const ProgramSource& source = program_.source(id);
  StageClock clock(stages_of(progress_), Stage::kRead, 0);
  SHW_TRY(auto scratch, make_());
  SHW_TRY(auto elements, decode_item(*inputs_[source.input], ChunkId{source.chunk},
                                     std::move(scratch), progress_));
  if (elements->size() == source.length) return elements;
  return fail(ErrorKind::kDamaged, "decodes to another number of bytes than the program says",
              {program_.names[source.file], source.offset});
}

void SpillFiles::decode(Item& item, std::unique_lock<std::mutex>& lock) {
  item.state = State::kDecoding;
  lock.unlock();
  auto made = decoded(item.source);
  lock.lock();
  if (made) {
    item.elements = std::move(*made);
    item.state = State::kDecoded;
  } else {
    item.error = std::move(made).error();
    item.state = State::kFailed;
  }
  changed_.notify_all();
}

Result<std::shared_ptr<const ByteSource>> SpillFiles::open(SourceId source) {
  const std::size_t at = at_.at(source);
  std::unique_lock lock(guard_);
  asked_ = std::max(asked_, at + 1);
  Item& own = items_[at];
  while (own.state == State::kNot || own.state == State::kDecoding) {
    Item* next = own.state == State::kNot ? &own : next_item_to_decode();
    if (next != nullptr)
      decode(*next, lock);
    else
      changed_.wait(lock);
  }
  if (own.state == State::kFailed) return tl::unexpected<Error>(own.error);
  return own.elements;
}

void SpillFiles::drop(SourceId source) {
  std::shared_ptr<const ByteSource> elements;  // freed after the lock: deleting takes time
  std::lock_guard lock(guard_);
  Item& item = items_[at_.at(source)];
  if (item.state != State::kDecoded) return;
  elements = std::move(item.elements);
  item.state = State::kNot;
}

}  // namespace shw
