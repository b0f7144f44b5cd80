#include "core/compare/fingerprints.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "core/base/encoder.h"
#include "core/base/parallel.h"
#include "core/compare/value_pass.h"
#include "core/formats/items/item_cursor.h"
#include "core/tensor/tile_fingerprint.h"
#include "core/tiles/blocks.h"
#include "core/tiles/coverage.h"

namespace shw {
namespace {

// Work unit of one thread; small tiles are combined, large ones split. Equal on all members of a
// team, regardless of memory and cores.
constexpr std::uint64_t kPartBytes = std::uint64_t{64} << 20;
constexpr std::uint32_t kPartTiles = 256;

// Tiles [first, last) of one tensor, or a box of one tile, relative to its first element.
struct Part {
  std::size_t tensor = 0;  // index in the requested tensors
  std::uint32_t first = 0, last = 0;
  std::optional<Box> box = {};
};

std::uint64_t bytes_of(ExtentsView sizes, std::size_t width) {
  return static_cast<std::uint64_t>(volume(sizes).value_or(0)) * width;
}

Blocks blocks_of(ExtentsView sizes, std::size_t width, std::uint64_t bytes) {
  const auto most = static_cast<std::int64_t>(std::max<std::uint64_t>(bytes / width, 1));
  return {copy_of(sizes), block_sizes(sizes, most, {})};
}

class FingerprintPass {
 public:
  FingerprintPass(const Checkpoint& checkpoint, const std::vector<TensorId>& tensors,
                  std::uint64_t memory, Progress* progress)
      : checkpoint_(checkpoint),
        tensors_(tensors),
        shares_(shares_of(memory)),
        progress_(progress),
        decoded_(shares_.decoded) {}

  Result<std::vector<Result<Fingerprint>>> run(Team* team);

 private:
  std::size_t width_of(std::size_t tensor) const {
    return size_of(checkpoint_.dtype(tensors_[tensor]));
  }
  Status judge(std::size_t tensor) const;
  void add_parts(std::size_t tensor);
  void add_boxes(std::size_t tensor, std::uint32_t tile);
  Result<Fingerprint> find(const Part& part);
  Status add_tile(const Part& part, std::uint32_t tile, ItemCursor& reader, Fingerprint& sum);
  Status add_block(TensorId tensor, ChunkId chunk, Box box, ItemCursor& reader, Fingerprint& sum);

  const Checkpoint& checkpoint_;
  const std::vector<TensorId>& tensors_;
  CompareShares shares_;
  Progress* progress_;
  DecodedItems decoded_;
  std::vector<Part> parts_;
  std::vector<std::uint64_t> costs_;  // bytes per part
};

Status FingerprintPass::judge(std::size_t tensor) const {
  const TensorId id = tensors_[tensor];
  if (width_of(tensor) == 0)
    return fail(ErrorKind::kUnsupported, "its dtype has no elements of whole bytes");
  if (volume(checkpoint_.shape(id)).value_or(0) == 0)
    return fail(ErrorKind::kUnsupported, "it has no elements");
  const TensorTiling judged = compute_tiling(checkpoint_, id);
  if (judged.tiling == Tiling::kExact) return {};
  return fail(ErrorKind::kDamaged, judged.defects.missing != 0
                                       ? "elements of it are in no chunk"
                                       : "its chunks do not hold each element exactly once");
}

void FingerprintPass::add_parts(std::size_t tensor) {
  const auto chunks = checkpoint_.chunks(tensors_[tensor]);
  bool may_join = false;
  for (std::uint32_t tile = 0; tile < chunks.size(); ++tile) {
    const std::uint64_t bytes = bytes_of(checkpoint_.sizes(chunks[tile]), width_of(tensor));
    if (bytes > kPartBytes) {
      add_boxes(tensor, tile);
      may_join = false;
    } else if (may_join && costs_.back() + bytes <= kPartBytes &&
               tile - parts_.back().first < kPartTiles) {
      parts_.back().last = tile + 1;
      costs_.back() += bytes;
    } else {
      parts_.push_back({tensor, tile, tile + 1});
      costs_.push_back(bytes);
      may_join = true;
    }
  }
}

// Compressed tiles are read sequentially by one thread.
void FingerprintPass::add_boxes(std::size_t tensor, std::uint32_t tile) {
  const ChunkId chunk = checkpoint_.chunks(tensors_[tensor])[tile];
  const ExtentsView sizes = checkpoint_.sizes(chunk);
  const auto storage = ItemCursor(checkpoint_, decoded_).storage(chunk);
  if (!storage || !storage->is_stored) {
    parts_.push_back({tensor, tile, tile + 1});
    costs_.push_back(bytes_of(sizes, width_of(tensor)));
    return;
  }
  Blocks blocks = blocks_of(sizes, width_of(tensor), kPartBytes);
  while (blocks.next()) {
    parts_.push_back({tensor, tile, tile + 1, blocks.block});
    costs_.push_back(bytes_of(blocks.block.sizes, width_of(tensor)));
  }
}

Result<Fingerprint> FingerprintPass::find(const Part& part) {
  Fingerprint sum;
  ItemCursor reader(checkpoint_, decoded_);
  for (std::uint32_t tile = part.first; tile < part.last; ++tile)
    SHW_CHECK(add_tile(part, tile, reader, sum));
  return sum;
}

Status FingerprintPass::add_tile(const Part& part, std::uint32_t tile, ItemCursor& reader,
                                 Fingerprint& sum) {
  const TensorId id = tensors_[part.tensor];
  const ChunkId chunk = checkpoint_.chunks(id)[tile];
  const Extents sizes = copy_of(checkpoint_.sizes(chunk));
  const Box whole{Extents(sizes.size(), 0), sizes};
  const Box& box = part.box ? *part.box : whole;
  Blocks blocks = blocks_of(box.sizes, width_of(part.tensor), shares_.block);
  while (blocks.next()) {
    Box block = blocks.block;
    for (std::size_t d = 0; d < sizes.size(); ++d) block.offsets[d] += box.offsets[d];
    SHW_CHECK(add_block(id, chunk, std::move(block), reader, sum));
  }
  return {};
}

Status FingerprintPass::add_block(TensorId tensor, ChunkId chunk, Box box, ItemCursor& reader,
                                  Fingerprint& sum) {
  SHW_CHECK(reader.begin_box(chunk, box));
  const ExtentsView offsets = checkpoint_.offsets(chunk);
  for (std::size_t d = 0; d < offsets.size(); ++d) box.offsets[d] += offsets[d];
  const std::size_t width = size_of(checkpoint_.dtype(tensor));
  TileFingerprint part(checkpoint_.shape(tensor), box, width);
  const std::uint64_t bytes = bytes_of(box.sizes, width);
  Bytes piece;
  for (std::uint64_t at = 0; at < bytes; at += shares_.piece) {
    if (is_cancelled(progress_)) return cancelled_error();
    const std::uint64_t length = std::min(shares_.piece, bytes - at);
    if (progress_ != nullptr) progress_->add(length);
    if (reader.is_hole_at(at, length)) {
      part.add_zeros(length);
      continue;
    }
    SHW_TRY(BytesView read, reader.read_at(at, length, piece));
    part.add(read);
  }
  sum += part.value();
  return {};
}

std::string words_of(const Result<Fingerprint>& found) {
  Encoder payload;
  payload.add(std::uint64_t{found.has_value()});
  if (found) {
    payload.add(found->a);
    payload.add(found->b);
  } else {
    payload.add(found.error());
  }
  return packed_text(payload.take());
}

// Keeps the first error of a tensor.
Status merge_encoded_fingerprint(const std::string& text, Result<Fingerprint>& sum) {
  Decoder payload(std::as_bytes(std::span(text)));
  SHW_TRY(const std::uint64_t is_found, payload.number());
  if (is_found == 0) {
    SHW_TRY(Error error, payload.error());
    if (sum) sum = tl::unexpected<Error>(std::move(error));
    return {};
  }
  Fingerprint part;
  SHW_TRY(part.a, payload.number());
  SHW_TRY(part.b, payload.number());
  if (sum) *sum += part;
  return {};
}

Result<std::vector<Result<Fingerprint>>> FingerprintPass::run(Team* team) {
  std::vector<Result<Fingerprint>> sums(tensors_.size(), Fingerprint{});
  SHW_CHECK(parallel_for(tensors_.size(), [&](std::size_t i) -> Status {
    if (is_cancelled(progress_)) return cancelled_error();
    if (auto judged = judge(i); !judged) sums[i] = tl::unexpected<Error>(std::move(judged).error());
    return {};
  }));
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (sums[i]) add_parts(i);
  }
  if (progress_ != nullptr && !costs_.empty())
    progress_->begin(Phase::kReadingBytes,
                     std::accumulate(costs_.begin(), costs_.end(), std::uint64_t{0}), true);
  MapTask work{"fingerprints", costs_, {}, progress_};
  work.find = [&](std::size_t i) -> Result<std::string> {
    const Result<Fingerprint> found = find(parts_[i]);
    if (!found && found.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(found.error());
    return words_of(found);
  };
  SHW_TRY(const std::vector<std::string> told, map_across_ranks(team, work));
  for (std::size_t i = 0; i < told.size(); ++i)
    SHW_CHECK(merge_encoded_fingerprint(told[i], sums[parts_[i].tensor]));
  return sums;
}

}  // namespace

Result<std::vector<Result<Fingerprint>>> fingerprints_of(const Checkpoint& checkpoint,
                                                         const std::vector<TensorId>& tensors,
                                                         std::uint64_t memory, Progress* progress,
                                                         Team* team) {
  return FingerprintPass(checkpoint, tensors, memory, progress).run(team);
}

}  // namespace shw
