#include "core/repair/plan/planned_chunks.h"

#include <algorithm>
#include <cassert>

namespace shw {

Extents PlannedChunks::list(List at) const {
  const std::int64_t* numbers = numbers_.data() + at + 1;
  return {numbers, numbers + numbers_[at]};
}

// Position of an equal list among `known`, otherwise of a new copy.
PlannedChunks::List PlannedChunks::intern_extents(const Extents& numbers,
                                                  std::initializer_list<List> known) {
  for (List at : known) {
    if (at != kNone && static_cast<std::size_t>(numbers_[at]) == numbers.size() &&
        std::equal(numbers.begin(), numbers.end(), numbers_.begin() + at + 1))
      return at;
  }
  assert(numbers_.size() < kNone);
  const auto at = static_cast<List>(numbers_.size());
  numbers_.push_back(static_cast<std::int64_t>(numbers.size()));
  numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
  return at;
}

void PlannedChunks::append_piece_row(const Piece& piece, const Row& row) {
  const PieceRow last = pieces_.empty() ? PieceRow{0, kNone, kNone, kNone, kNone} : pieces_.back();
  PieceRow made;
  made.chunk = static_cast<std::uint32_t>(piece.chunk);
  made.sizes = intern_extents(piece.source.sizes, {last.sizes, row.sizes});
  // Most pieces begin at the start of the old chunk, of the new chunk, or of both.
  made.from = intern_extents(piece.source.offsets, {last.from, last.at});
  made.at = intern_extents(piece.at, {last.at, made.from});
  made.order = intern_extents(piece.permutation, {last.order});
  pieces_.push_back(made);
}

void PlannedChunks::push_back(const PlannedChunk& chunk) {
  const Row last = rows_.empty() ? Row{kNone, kNone} : rows_.back();
  Row row;
  row.sizes = intern_extents(chunk.box.sizes, {last.sizes});
  row.offsets = intern_extents(chunk.box.offsets, {last.offsets});
  row.writer = chunk.writer;
  // kNone marks rows without an item, so no chunk id may have its value.
  assert(!chunk.item || static_cast<std::uint32_t>(*chunk.item) != kNone);
  row.item = chunk.item ? static_cast<std::uint32_t>(*chunk.item) : kNone;
  if (!chunk.pieces.empty()) piece_ends_.resize(rows_.size());
  for (const Piece& piece : chunk.pieces) append_piece_row(piece, row);
  if (!piece_ends_.empty() || !chunk.pieces.empty())
    piece_ends_.push_back(static_cast<std::uint32_t>(pieces_.size()));
  if (!chunk.external.empty())
    sides_.emplace_back(static_cast<std::uint32_t>(rows_.size()), chunk.external);
  rows_.push_back(row);
}

void PlannedChunks::shrink_to_fit() {
  rows_.shrink_to_fit();
  numbers_.shrink_to_fit();
  pieces_.shrink_to_fit();
  piece_ends_.shrink_to_fit();
}

Box PlannedChunks::box(std::size_t chunk) const {
  return {list(rows_[chunk].offsets), list(rows_[chunk].sizes)};
}

std::optional<ChunkId> PlannedChunks::item(std::size_t chunk) const {
  const std::uint32_t item = rows_[chunk].item;
  return item == kNone ? std::nullopt : std::optional(ChunkId{item});
}

const PlannedChunk PlannedChunks::operator[](std::size_t chunk) const {
  PlannedChunk made{box(chunk), item(chunk), {}, {}, rows_[chunk].writer};
  if (!piece_ends_.empty()) {
    const std::size_t first = chunk == 0 ? 0 : piece_ends_[chunk - 1], last = piece_ends_[chunk];
    made.pieces.reserve(last - first);
    for (std::size_t i = first; i < last; ++i) {
      const PieceRow& row = pieces_[i];
      made.pieces.push_back(
          {ChunkId{row.chunk}, {list(row.from), list(row.sizes)}, list(row.at), list(row.order)});
    }
  }
  auto side =
      std::lower_bound(sides_.begin(), sides_.end(), chunk,
                       [](const auto& one, std::size_t wanted) { return one.first < wanted; });
  if (side != sides_.end() && side->first == chunk) made.external = side->second;
  return made;
}

}  // namespace shw
