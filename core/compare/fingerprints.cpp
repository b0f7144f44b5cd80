#include "core/compare/fingerprints.h"

#include <algorithm>

#include "core/base/parallel.h"
#include "core/compare/value_pass.h"
#include "core/formats/block_reader.h"
#include "core/tensor/tile_fingerprint.h"
#include "core/tiles/blocks.h"
#include "core/tiles/coverage.h"

namespace shw {
namespace {

struct FingerprintPass {
  const Checkpoint& checkpoint;
  CompareShares shares;
  Progress* progress;
  DecodedItems decoded{shares.decoded};

  Result<Fingerprint> run(TensorId tensor) {
    Fingerprint sum;
    BlockReader reader(checkpoint, decoded);
    for (ChunkId chunk : checkpoint.chunks(tensor)) SHW_CHECK(add_tile(tensor, chunk, reader, sum));
    return sum;
  }

  Status add_tile(TensorId tensor, ChunkId chunk, BlockReader& reader, Fingerprint& sum) {
    const std::size_t width = size_of(checkpoint.dtype(tensor));
    const Extents sizes = copy_of(checkpoint.sizes(chunk));
    const auto most = static_cast<std::int64_t>(std::max<std::uint64_t>(shares.block / width, 1));
    Bytes piece;
    Blocks blocks{sizes, block_sizes(sizes, most, {})};
    while (blocks.next()) {
      Box box = blocks.block;
      SHW_CHECK(reader.begin(chunk, box));
      ExtentsView offsets = checkpoint.offsets(chunk);
      for (std::size_t d = 0; d < offsets.size(); ++d) box.offsets[d] += offsets[d];
      TileFingerprint part(checkpoint.shape(tensor), box, width);
      const auto bytes = static_cast<std::uint64_t>(volume(box.sizes).value_or(0)) * width;
      for (std::uint64_t at = 0; at < bytes; at += shares.piece) {
        if (is_cancelled(progress)) return cancelled_error();
        const std::uint64_t length = std::min(shares.piece, bytes - at);
        if (progress != nullptr) progress->add(length);
        if (reader.is_hole(at, length)) {
          part.add_zeros(length);
          continue;
        }
        SHW_TRY(BytesView read, reader.read(at, length, piece));
        part.add(read);
      }
      sum += part.value();
    }
    return {};
  }
};

bool is_whole(const Checkpoint& checkpoint, TensorId tensor) {
  return size_of(checkpoint.dtype(tensor)) != 0 &&
         volume(checkpoint.shape(tensor)).value_or(0) != 0 &&
         judge_tiling(checkpoint, tensor).tiling == Tiling::kExact;
}

}  // namespace

Result<std::vector<std::optional<Fingerprint>>> fingerprints_of(
    const Checkpoint& checkpoint, const std::vector<TensorId>& tensors, std::uint64_t memory,
    Progress* progress) {
  std::vector<std::optional<Fingerprint>> out(tensors.size());
  FingerprintPass pass{checkpoint, shares_of(memory), progress};
  SHW_CHECK(each_in_parallel(tensors.size(), [&](std::size_t i) -> Status {
    if (!is_whole(checkpoint, tensors[i])) return {};
    auto made = pass.run(tensors[i]);
    if (made) out[i] = *made;
    if (!made && made.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(std::move(made).error());
    return {};
  }));
  return out;
}

}  // namespace shw
