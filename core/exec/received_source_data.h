// Source data that other ranks have sent for a part.
#pragma once

#include <vector>

#include "core/exec/file_assignment.h"
#include "core/exec/write_blocks.h"

namespace shw {

// The pieces of a message between two ranks: for each of the receiver's parts in a round that needs
// data from others, in order.
struct SourceDataMessage {
  ElementSums elements;
  BytesView bytes;
};

class ReceivedSourceData final : public RemoteSourceData {
 public:
  ReceivedSourceData(const FileAssignment& dealt, std::uint32_t self)
      : dealt_(dealt), self_(self), left_(dealt.machine.size()) {}

  void add(std::size_t worker, const SourceDataMessage& piece) {
    left_[worker] = piece.bytes;
    elements_ += piece.elements;
  }
  Result<bool> take(SourceId source, std::span<std::byte> to) override;
  Result<ElementSums> finish() override;

 private:
  const FileAssignment& dealt_;
  std::uint32_t self_;
  std::vector<BytesView> left_;  // by sending rank
  ElementSums elements_{};
};

}  // namespace shw
