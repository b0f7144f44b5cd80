// What other workers have sent for a part that this one writes.
#pragma once

#include <vector>

#include "core/exec/deal_files.h"
#include "core/exec/write_blocks.h"

namespace shw {

// Pieces of a message from one worker to another: of the receiver's parts in a round, those that
// somebody else has a hand in, in order.
struct SentPiece {
  ElementSums elements;
  BytesView bytes;
};

class PartOfOthers final : public SentParts {
 public:
  PartOfOthers(const DealtFiles& dealt, std::uint32_t self)
      : dealt_(dealt), self_(self), left_(dealt.machine.size()) {}

  void add(std::size_t worker, const SentPiece& piece) {
    left_[worker] = piece.bytes;
    elements_ += piece.elements;
  }
  Result<bool> take(SourceId source, std::span<std::byte> to) override;
  Result<ElementSums> finish() override;

 private:
  const DealtFiles& dealt_;
  std::uint32_t self_;
  std::vector<BytesView> left_;  // by worker
  ElementSums elements_{};
};

}  // namespace shw
