// Decoded items in unnamed temporary files. Each item is decoded once for all threads and deleted
// after the last part that reads it is written.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/base/progress.h"
#include "core/exec/spill_plan.h"
#include "core/io/scratch.h"

namespace shw {

using MakeScratch = std::function<Result<std::shared_ptr<ScratchFile>>()>;

class SpillFiles {
 public:
  // Keeps references to the program and its inputs.
  SpillFiles(const Program& program, std::vector<const Checkpoint*> inputs, const SpillPlan& places,
             MakeScratch make, Progress* progress);

  bool has(SourceId source) const { return at_.contains(source); }
  // Announces that open(source) will be called; must precede all other calls.
  void expect(SourceId source) { items_[at_.at(source)].is_expected = true; }
  // The decoded elements. While another thread decodes them, this thread decodes the next item.
  Result<std::shared_ptr<const ByteSource>> open(SourceId source);
  // The source is not needed any more.
  void drop(SourceId source);

 private:
  enum class State : std::uint8_t { kNot, kDecoding, kDecoded, kFailed };
  struct Item {
    SourceId source{};
    bool is_expected = false;
    State state = State::kNot;
    std::shared_ptr<const ByteSource> elements = nullptr;
    Error error = {};
  };

  Item* next_item_to_decode();
  void decode(Item& item, std::unique_lock<std::mutex>& lock);
  Result<std::shared_ptr<const ByteSource>> decoded(SourceId source) const;

  const Program& program_;
  const std::vector<const Checkpoint*> inputs_;
  const MakeScratch make_;
  Progress* const progress_;
  const std::size_t ahead_;
  std::unordered_map<SourceId, std::size_t> at_;  // index in items_
  std::mutex guard_;                              // guards everything below
  std::condition_variable changed_;
  std::vector<Item> items_;
  std::size_t asked_ = 0;  // index behind the last item requested
};

}  // namespace shw
