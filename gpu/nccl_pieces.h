// What the workers of an NCCL transport have begun, and what of it may be given to NCCL together:
// nccl_transport.cpp says by which rule.
#pragma once

#include <list>
#include <span>
#include <utility>
#include <vector>

#include "core/cluster/transport.h"

namespace shw {

// What is said of a piece over the control transport.
struct Said {
  std::uint64_t bytes = 0;   // of the whole message
  std::uint64_t number = 0;  // of `go`
};

inline std::span<std::byte> bytes_of(Said& said) {
  return std::as_writable_bytes(std::span(&said, 1));
}

// Begun by the caller, told to the other one or waiting for its word, agreed, NCCL's, at its end.
enum class PieceState : std::uint8_t { kQueued, kTold, kHeard, kGiven, kDone };

// Control receives into `heard` and sends from `told`: a piece stays where it is.
struct NcclPiece {
  int peer = 0;
  Tag tag{};
  bool is_receive = false;
  bool leads = false;
  PieceState state = PieceState::kQueued;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::uint64_t message = 0;              // bytes of all of it
  const std::byte* message_at = nullptr;  // where all of it begins
  std::byte* staged = nullptr;
  Said told, heard;

  // Those of one pair that keep their order: of one tag, one way. Upwards and downwards do not mix,
  // for each side begins them in an order of its own.
  int way() const { return static_cast<int>(tag) + (is_receive == leads ? 2 : 0); }
  std::size_t lane() const { return static_cast<std::size_t>(4 * peer + way()); }
  Tag control_tag() const { return static_cast<Tag>(way()); }
};

// Pieces lie at multiples of it on the device.
inline constexpr std::size_t kStagedAt = 256;
inline std::size_t staged_bytes(const NcclPiece& piece) {
  return (piece.bytes + kStagedAt - 1) / kStagedAt * kStagedAt;
}

// Of what a worker leads all that is ready, in the order in which it was begun; of the rest what
// has its `go`, in the order of the numbers. `next`: by peer, the number of the next piece. No more
// than `most` bytes together, but one piece always.
std::vector<NcclPiece*> next_group(std::list<NcclPiece>& pieces, std::vector<std::uint64_t> next,
                                   std::size_t most);

}  // namespace shw
