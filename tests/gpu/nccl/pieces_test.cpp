#include "gpu/nccl_pieces.h"

#include <doctest/doctest.h>

using namespace shw;

namespace {

NcclPiece& add(std::list<NcclPiece>& pieces, int peer, bool leads, PieceState state,
               std::uint64_t number = 0) {
  NcclPiece& piece = pieces.emplace_back();
  piece.peer = peer;
  piece.leads = leads;
  piece.state = state;
  piece.bytes = piece.message = 1000;
  piece.heard = {1000, number};
  return piece;
}

constexpr std::size_t kMuch = 1'000'000;

}  // namespace

TEST_CASE("A leader gives what is ready, and nothing overtakes what is not") {
  std::list<NcclPiece> pieces;
  NcclPiece& first = add(pieces, 1, true, PieceState::kAgreed);
  add(pieces, 1, true, PieceState::kAnnounced);
  add(pieces, 1, true, PieceState::kAgreed);
  NcclPiece& other_peer = add(pieces, 2, true, PieceState::kAgreed);
  NcclPiece& other_tag = add(pieces, 1, true, PieceState::kAgreed);
  other_tag.tag = Tag::kBytes;
  NcclPiece& other_way = add(pieces, 1, true, PieceState::kAgreed);
  other_way.is_receive = true;
  CHECK(next_group(pieces, {0, 0, 0}, kMuch) ==
        std::vector<NcclPiece*>{&first, &other_peer, &other_tag, &other_way});
}

TEST_CASE("Who follows gives in the order of the numbers, and waits where one is missing") {
  std::list<NcclPiece> pieces;
  NcclPiece& third = add(pieces, 0, false, PieceState::kAgreed, 7);
  NcclPiece& first = add(pieces, 0, false, PieceState::kAgreed, 5);
  NcclPiece& second = add(pieces, 0, false, PieceState::kAgreed, 6);
  add(pieces, 0, false, PieceState::kAgreed, 9);
  CHECK(next_group(pieces, {5}, kMuch) == std::vector<NcclPiece*>{&first, &second, &third});
  CHECK(next_group(pieces, {4}, kMuch).empty());
}

TEST_CASE("A group has the room that it is given, or one piece") {
  std::list<NcclPiece> pieces;
  for (int i = 0; i < 10; ++i) add(pieces, 1, true, PieceState::kAgreed);
  CHECK(next_group(pieces, {0, 0}, 3 * 1024).size() == 3);
  CHECK(next_group(pieces, {0, 0}, 3 * 1024 - 1).size() == 2);
  CHECK(next_group(pieces, {0, 0}, 1).size() == 1);
  CHECK(next_group(pieces, {0, 0}, kMuch).size() == 10);
}
