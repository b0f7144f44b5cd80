// Optimizer state that was also saved in per-rank files: every chunk is taken whole from such a
// file and cast to the tensor's dtype. One new chunk per piece.
#include <charconv>

#include "core/repair/lower/lower.h"

namespace shw {
namespace {

// Rank from the last number in the file name: "optimizer_rank_3.pt" is rank 3.
std::uint32_t rank_of_file_name(const std::string& file) {
  std::size_t end = file.find_last_of("0123456789");
  if (end == std::string::npos) return 0;
  std::size_t begin = end;
  while (begin > 0 && file[begin - 1] >= '0' && file[begin - 1] <= '9') --begin;
  std::uint32_t rank = 0;
  auto [stop, code] = std::from_chars(file.data() + begin, file.data() + end + 1, rank);
  return code == std::errc{} && stop == file.data() + end + 1 ? rank : 0;
}

}  // namespace

Result<PlannedTensor> lower_restored_from_side(const Checkpoint& checkpoint,
                                               const RestoredFromRankFiles& diagnosis) {
  PlannedTensor planned;
  planned.tensor = diagnosis.tensor;
  planned.shape = diagnosis.expected;
  for (const ExternalPiece& piece : diagnosis.pieces) {
    if (!is_inside(piece.at, piece.sizes, diagnosis.expected))
      return cannot_lower(checkpoint, diagnosis.tensor, "a part is outside the corrected tensor");
    if (volume(piece.sizes) == 0) continue;
    PlannedChunk chunk;
    chunk.box = Box{piece.at, piece.sizes};
    chunk.external.push_back(piece);
    chunk.external.back().at.assign(piece.at.size(), 0);
    chunk.writer = rank_of_file_name(piece.file);
    planned.chunks.push_back(std::move(chunk));
  }
  return planned;
}

}  // namespace shw
