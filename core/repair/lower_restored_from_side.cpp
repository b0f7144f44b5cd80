// S4 with per-rank optimizer files: every chunk is whole in a side file and is taken from there,
// cast to the tensor's dtype. One new chunk a piece.
//
// Where the pieces lie in data files of the checkpoint itself they are items that no record names
// (rule shared-storage): offset and length are then the whole item's, and the chunk is pointed at
// it. Nothing is copied.
#include <algorithm>
#include <charconv>

#include "core/repair/lower.h"

namespace shw {
namespace {

// "optimizer_rank_3.pt": the last number of the name is the rank that held it.
std::uint32_t rank_in(const std::string& file) {
  std::size_t end = file.find_last_of("0123456789");
  if (end == std::string::npos) return 0;
  std::size_t begin = end;
  while (begin > 0 && file[begin - 1] >= '0' && file[begin - 1] <= '9') --begin;
  std::uint32_t rank = 0;
  auto [stop, code] = std::from_chars(file.data() + begin, file.data() + end + 1, rank);
  return code == std::errc{} && stop == file.data() + end + 1 ? rank : 0;
}

bool is_own_file(const Checkpoint& checkpoint, const SidePiece& piece) {
  auto files = checkpoint.files();
  std::string_view suffix = checkpoint.format().traits.data_suffix;
  return !suffix.empty() && piece.file.ends_with(suffix) &&
         std::any_of(files.begin(), files.end(),
                     [&](const FileRow& file) { return file.path == piece.file; });
}

// Tiles, shape and names stay; what changes is where the items of some tiles are said to lie.
PlannedTensor point_at_items(const Checkpoint& checkpoint, const RestoredFromSide& diagnosis) {
  PlannedTensor planned;
  planned.tensor = diagnosis.tensor;
  planned.shape = diagnosis.expected;
  for (ChunkId id : checkpoint.chunks(diagnosis.tensor)) {
    PlannedChunk chunk;
    chunk.box = box_of(checkpoint, id);
    chunk.item = id;
    chunk.writer = checkpoint.writer(id).value_or(0);
    for (const SidePiece& piece : diagnosis.pieces) {
      if (piece.at == chunk.box.offsets && piece.sizes == chunk.box.sizes) chunk.side = {piece};
    }
    planned.chunks.push_back(std::move(chunk));
  }
  return planned;
}

}  // namespace

Result<PlannedTensor> lower_restored_from_side(const Checkpoint& checkpoint,
                                               const RestoredFromSide& diagnosis) {
  bool own = std::all_of(diagnosis.pieces.begin(), diagnosis.pieces.end(),
                         [&](const SidePiece& piece) { return is_own_file(checkpoint, piece); });
  if (own && !diagnosis.pieces.empty()) return point_at_items(checkpoint, diagnosis);
  PlannedTensor planned;
  planned.tensor = diagnosis.tensor;
  planned.shape = diagnosis.expected;
  for (const SidePiece& piece : diagnosis.pieces) {
    if (!lies_inside(piece.at, piece.sizes, diagnosis.expected))
      return cannot_lower(checkpoint, diagnosis.tensor, "a piece lies outside the true tensor");
    if (volume(piece.sizes) == 0) continue;
    PlannedChunk chunk;
    chunk.box = Box{piece.at, piece.sizes};
    chunk.side.push_back(piece);
    chunk.side.back().at.assign(piece.at.size(), 0);
    chunk.writer = rank_in(piece.file);
    planned.chunks.push_back(std::move(chunk));
  }
  return planned;
}

}  // namespace shw
