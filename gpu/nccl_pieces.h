// The pieces of messages that a rank has started, and the choice of pieces for the next NCCL group;
// the protocol is described in nccl_transport.cpp.
#pragma once

#include <list>
#include <span>
#include <utility>
#include <vector>

#include "core/cluster/transport.h"

namespace shw {

// The message about a piece on the control transport.
struct PieceNotice {
  std::uint64_t bytes = 0;   // of the whole message
  std::uint64_t number = 0;  // for `go`
};

inline std::span<std::byte> bytes_of(PieceNotice& said) {
  return std::as_writable_bytes(std::span(&said, 1));
}

// Started by the caller; announced or awaiting the peer; agreed; given to NCCL; complete.
enum class PieceState : std::uint8_t { kQueued, kAnnounced, kAgreed, kSubmitted, kDone };

// Must not move: control receives into `heard` and sends from `told`.
struct NcclPiece {
  int peer = 0;
  Tag tag{};
  bool is_receive = false;
  bool leads = false;
  PieceState state = PieceState::kQueued;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::uint64_t message = 0;              // length of the whole message
  const std::byte* message_at = nullptr;  // begin of the whole message
  std::byte* staged = nullptr;
  PieceNotice told, heard;

  // Pieces with equal lane between two ranks are sent in start order. A lane is one tag in one
  // direction: each side starts the two directions in its own order.
  int way() const { return static_cast<int>(tag) + (is_receive == leads ? 2 : 0); }
  std::size_t lane() const { return static_cast<std::size_t>(4 * peer + way()); }
  Tag control_tag() const { return static_cast<Tag>(way()); }
};

// Alignment of pieces on the device.
inline constexpr std::size_t kStagingAlignment = 256;
inline std::size_t staged_bytes(const NcclPiece& piece) {
  return (piece.bytes + kStagingAlignment - 1) / kStagingAlignment * kStagingAlignment;
}

// The next group: for pairs that this rank leads all ready pieces in start order; for others the
// pieces with a `go`, by number. `next`: by peer, the number of the next piece. At most `most`
// bytes in total, but at least one piece.
std::vector<NcclPiece*> next_group(std::list<NcclPiece>& pieces, std::vector<std::uint64_t> next,
                                   std::size_t most);

}  // namespace shw
