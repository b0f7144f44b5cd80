#include "core/repair/compare.h"

#include <algorithm>
#include <cstring>

#include "core/base/hash.h"
#include "core/repair/lower.h"
#include "core/repair/reorder.h"
#include "core/tensor/cast.h"
#include "core/tensor/strided_copy.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

// Of one block; three of them are held at once. Small enough to stay in a core's cache.
constexpr std::int64_t kBlockBytes = 4 << 20;

// Dims of the new chunk, fastest in the old one first.
Extents fastest_first(const Extents& permutation) {
  Extents order(permutation.size());
  for (std::size_t d = 0; d < permutation.size(); ++d)
    order[order.size() - 1 - static_cast<std::size_t>(permutation[d])] =
        static_cast<std::int64_t>(d);
  return order;
}

// `common`, a part of what the piece fills, in the chunk that it comes from.
Box source_of(const Piece& piece, const Box& common) {
  Box source = common;
  for (std::size_t d = 0; d < common.offsets.size(); ++d) {
    std::size_t old =
        piece.permutation.empty() ? d : static_cast<std::size_t>(piece.permutation[d]);
    source.offsets[old] = piece.source.offsets[old] + common.offsets[d] - piece.at[d];
    source.sizes[old] = common.sizes[d];
  }
  return source;
}

// The elements of `common`, in the order of the new chunk.
Result<Bytes> read_piece(const Piece& piece, const Box& common, BoxReader& source,
                         std::size_t element) {
  Box box = source_of(piece, common);
  SHW_TRY(Bytes bytes, source.read(piece.chunk, box));
  if (piece.permutation.empty()) return bytes;
  Piece here{piece.chunk, whole(box.sizes), common.offsets, piece.permutation};
  return in_new_order(here, common, box.sizes, bytes, element);
}

bool is_zero(BytesView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// What boxes of a written chunk should hold.
struct Comparison {
  const PlannedTensor& tensor;
  const PlannedChunk& chunk;
  BoxReader& source;
  BoxReader& written;
  ChunkId at;
  Progress* progress;
  Dtype dtype = source.checkpoint().dtype(tensor.tensor);

  tl::unexpected<Error> differs(const std::string& what) const {
    return fail(ErrorKind::kIo, what + " differs from its source after it was written",
                Place{.file = {}, .tensor = std::string(source.checkpoint().fqn(tensor.tensor))});
  }

  // Reads every part of `box`, in the new chunk, once; `wanted` gives what should be in it.
  template <class Wanted>
  Status each_block(const Box& box, const Extents& order, const char* what, Wanted wanted) {
    std::int64_t most = kBlockBytes / static_cast<std::int64_t>(size_of(dtype));
    Blocks blocks{box.sizes, block_sizes(box.sizes, most, order)};
    std::int64_t seen = 0;
    while (blocks.next()) {
      if (is_cancelled(progress)) return cancelled_error();
      Box part = blocks.block;
      seen += *volume(part.sizes);
      for (std::size_t d = 0; d < part.offsets.size(); ++d) part.offsets[d] += box.offsets[d];
      SHW_TRY(Bytes there, written.read(at, part));
      SHW_TRY(bool same, wanted(part, there));
      if (!same) return differs(what);
    }
    return seen == volume(box.sizes) ? Status{} : Status(differs(what));
  }

  Status compare_piece(const Piece& piece) {
    Box box{piece.at, sizes_in_new(piece)};
    return each_block(box, fastest_first(piece.permutation), "a tile",
                      [&](const Box& part, const Bytes& there) -> Result<bool> {
                        SHW_TRY(Bytes bytes, read_piece(piece, part, source, size_of(dtype)));
                        return bytes == there;
                      });
  }

  Status compare_side(const SidePiece& side) {
    SHW_TRY(auto file, source.checkpoint().directory()->open(side.file));
    return each_block({side.at, side.sizes}, {}, "a tile",
                      [&](const Box& part, const Bytes& there) -> Result<bool> {
                        Box box = part;
                        for (std::size_t d = 0; d < box.offsets.size(); ++d)
                          box.offsets[d] -= side.at[d];
                        SHW_TRY(Bytes raw,
                                read_box(*file, side.offset, side.sizes, box, size_of(side.dtype)));
                        SHW_TRY(Bytes cast, cast_elements(side.dtype, raw, dtype));
                        return cast == there;
                      });
  }

  // The same box of another tensor, cast.
  Status compare_filled(const Box& box, BoxReader& holder, TensorId from) {
    Box wanted = box;
    for (std::size_t d = 0; d < wanted.offsets.size(); ++d)
      wanted.offsets[d] += chunk.box.offsets[d];
    for (ChunkId id : holder.checkpoint().chunks(from)) {
      Box saved = box_of(holder.checkpoint(), id);
      if (saved.offsets.size() != wanted.offsets.size()) continue;
      auto common = wanted.sizes.empty() ? std::optional<Box>(wanted) : intersect(saved, wanted);
      if (!common) continue;
      for (std::size_t d = 0; d < common->offsets.size(); ++d)
        common->offsets[d] -= chunk.box.offsets[d];
      auto same = [&](const Box& part, const Bytes& there) -> Result<bool> {
        Box inside = part;
        for (std::size_t d = 0; d < inside.offsets.size(); ++d)
          inside.offsets[d] += chunk.box.offsets[d] - saved.offsets[d];
        SHW_TRY(Bytes bytes, holder.read(id, inside));
        SHW_TRY(Bytes cast, cast_elements(holder.checkpoint().dtype(from), bytes, dtype));
        return cast == there;
      };
      SHW_CHECK(each_block(*common, {}, "a tile", same));
    }
    return {};
  }

  Status compare_rest() {
    SHW_TRY(std::vector<Box> rest, rest_of(source.checkpoint(), tensor, chunk));
    auto zero = [](const Box&, const Bytes& there) -> Result<bool> { return is_zero(there); };
    if (tensor.fill == Fill::kZero) {
      for (const Box& box : rest) SHW_CHECK(each_block(box, {}, "the fill of a tile", zero));
      return {};
    }
    bool elsewhere = tensor.fill == Fill::kReference && tensor.fill_source != nullptr;
    const Checkpoint& holder = elsewhere ? *tensor.fill_source : source.checkpoint();
    auto from = holder.find(tensor.fill_from);
    if (!from && rest.empty()) return {};
    if (!from) return differs("the fill of a tile");
    BoxReader reader(holder);
    for (const Box& box : rest) SHW_CHECK(compare_filled(box, reader, *from));
    return {};
  }
};

}  // namespace

Status compare_payload(const PlannedTensor& tensor, const PlannedChunk& chunk, BoxReader& source,
                       BoxReader& written, ChunkId at, Progress* progress) {
  Comparison comparison{tensor, chunk, source, written, at, progress};
  if (!same(written.checkpoint().sizes(at), chunk.box.sizes))
    return comparison.differs("the size of a tile");
  for (const Piece& piece : chunk.pieces) SHW_CHECK(comparison.compare_piece(piece));
  for (const SidePiece& side : chunk.side) SHW_CHECK(comparison.compare_side(side));
  return comparison.compare_rest();
}

Result<std::string> hash_payload(const PlannedTensor& tensor, const PlannedChunk& chunk,
                                 BoxReader& source, Progress* progress) {
  std::size_t element = size_of(source.checkpoint().dtype(tensor.tensor));
  RunningHash hash;
  Blocks blocks{chunk.box.sizes,
                block_sizes(chunk.box.sizes, kBlockBytes / static_cast<std::int64_t>(element), {})};
  while (blocks.next()) {
    if (is_cancelled(progress)) return cancelled_error();
    const Box& block = blocks.block;
    Extents strides = byte_strides(block.sizes, element);
    Bytes out(static_cast<std::size_t>(*volume(block.sizes)) * element);
    for (const Piece& piece : chunk.pieces) {
      Box to{piece.at, sizes_in_new(piece)};
      auto common = block.sizes.empty() ? std::optional<Box>(block) : intersect(to, block);
      if (!common) continue;
      SHW_TRY(Bytes bytes, read_piece(piece, *common, source, element));
      std::int64_t begin = 0;
      for (std::size_t d = 0; d < strides.size(); ++d)
        begin += (common->offsets[d] - block.offsets[d]) * strides[d];
      each_canonical_pair(
          pair_of(common->sizes, byte_strides(common->sizes, element), 0, strides, begin),
          [&](const LayoutPair& part) { copy_elements(bytes.data(), out.data(), part, element); });
    }
    hash.add(out);
  }
  return hash.text();
}

}  // namespace shw
