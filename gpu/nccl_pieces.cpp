#include "gpu/nccl_pieces.h"

#include <algorithm>
#include <set>

namespace shw {

std::vector<NcclPiece*> next_group(std::list<NcclPiece>& pieces, std::vector<std::uint64_t> next,
                                   std::size_t most) {
  std::vector<NcclPiece*> group, followed;
  std::set<std::size_t> not_ready;  // lanes with a waiting piece
  for (NcclPiece& piece : pieces) {
    if (piece.leads && piece.state < PieceState::kAgreed) not_ready.insert(piece.lane());
    if (piece.state != PieceState::kAgreed) continue;
    if (!piece.leads)
      followed.push_back(&piece);
    else if (!not_ready.contains(piece.lane()))
      group.push_back(&piece);
  }
  std::stable_sort(followed.begin(), followed.end(), [](const NcclPiece* a, const NcclPiece* b) {
    return a->heard.number < b->heard.number;
  });
  for (NcclPiece* piece : followed) {
    std::uint64_t& number = next[static_cast<std::size_t>(piece->peer)];
    if (piece->heard.number != number) continue;
    ++number;
    group.push_back(piece);
  }
  std::size_t taken = 0, bytes = 0;
  for (; taken < group.size(); ++taken) {
    bytes += staged_bytes(*group[taken]);
    if (taken > 0 && bytes > most) break;
  }
  group.resize(taken);
  return group;
}

}  // namespace shw
