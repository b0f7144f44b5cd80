// Items that are decoded into files without a name, each once for all threads, and given up when
// the last part that reads them is written.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/base/progress.h"
#include "core/exec/decoded_places.h"
#include "core/io/scratch.h"

namespace shw {

using MakeScratch = std::function<Result<std::shared_ptr<ScratchFile>>()>;

class ScratchItems {
 public:
  // Refers to the program and its inputs.
  ScratchItems(const Program& program, std::vector<const Checkpoint*> inputs,
               const DecodedPlaces& places, MakeScratch make, Progress* progress);

  bool has(SourceId source) const { return at_.contains(source); }
  // Of one that has(): it will be asked for. Before all else.
  void expect(SourceId source) { items_[at_.at(source)].is_expected = true; }
  // Its elements. While another thread decodes it, this one decodes what is needed next.
  Result<std::shared_ptr<const ByteSource>> open(SourceId source);
  // It is asked for no more.
  void drop(SourceId source);

 private:
  enum class State : std::uint8_t { kNot, kBeing, kDecoded, kFailed };
  struct Item {
    SourceId source{};
    bool is_expected = false;
    State state = State::kNot;
    std::shared_ptr<const ByteSource> elements = nullptr;
    Error error = {};
  };

  Item* next_ahead();
  void decode(Item& item, std::unique_lock<std::mutex>& lock);
  Result<std::shared_ptr<const ByteSource>> decoded(SourceId source) const;

  const Program& program_;
  const std::vector<const Checkpoint*> inputs_;
  const MakeScratch make_;
  Progress* const progress_;
  const std::size_t ahead_;
  std::unordered_map<SourceId, std::size_t> at_;  // in items_
  std::mutex guard_;                              // of all below
  std::condition_variable changed_;
  std::vector<Item> items_;
  std::size_t asked_ = 0;  // behind the last one that was asked for
};

}  // namespace shw
