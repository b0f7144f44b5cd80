#include "core/repair/proof/compare.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "core/formats/items.h"
#include "core/repair/lower/item_place.h"
#include "core/repair/lower/lower.h"
#include "core/repair/plan/reorder.h"
#include "core/tensor/cast.h"
#include "core/tensor/strided_copy.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

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
Status read_piece(const Piece& piece, const Box& common, BoxReader& source, std::size_t element,
                  Bytes& to) {
  Box box = source_of(piece, common);
  SHW_CHECK(source.read(piece.chunk, box, to));
  if (piece.permutation.empty()) return {};
  Piece here{piece.chunk, whole(box.sizes), common.offsets, piece.permutation};
  to = in_new_order(here, common, box.sizes, to, element);
  return {};
}

tl::unexpected<Error> differs(const Comparing& comparing, const std::string& what) {
  const Checkpoint& written = comparing.written.checkpoint();
  std::string_view fqn = written.fqn(written.tensor_of(comparing.at));
  return fail(ErrorKind::kIo, what + " differs from its source after it was written",
              Place{.file = {}, .tensor = std::string(fqn)});
}

// What is wanted of a part of a new chunk, in its order; and whether it is known to be zeros
// without being read.
struct WantedPart {
  std::function<Status(const Box&, Bytes& to)> read;
  std::function<bool(const Box&)> is_zeros = [](const Box&) { return false; };
};

// Reads every part of `box`, in the new chunk, once; holes that are to be zeros cost nothing.
Status each_block(const Comparing& comparing, const Box& box, const Extents& order,
                  const char* what, const WantedPart& wanted) {
  const Checkpoint& result = comparing.written.checkpoint();
  Dtype dtype = result.dtype(result.tensor_of(comparing.at));
  const std::int64_t bytes = order.empty() ? kComparedBytes : kTurnedBytes;
  const std::int64_t most = bytes / static_cast<std::int64_t>(size_of(dtype));
  Blocks blocks{box.sizes, block_sizes(box.sizes, most, order)};
  std::int64_t seen = 0;
  Bytes there, expected;
  while (blocks.next()) {
    if (is_cancelled(comparing.progress)) return cancelled_error();
    Box part = blocks.block;
    const std::int64_t elements = *volume(part.sizes);
    seen += elements;
    for (std::size_t d = 0; d < part.offsets.size(); ++d) part.offsets[d] += box.offsets[d];
    if (comparing.written.is_hole(comparing.at, part) && wanted.is_zeros(part)) {
      if (comparing.progress != nullptr)
        comparing.progress->add(static_cast<std::uint64_t>(elements) * size_of(dtype));
      if (comparing.compared != nullptr) *comparing.compared += elements;
      continue;
    }
    SHW_CHECK(comparing.written.read(comparing.at, part, there));
    SHW_CHECK(wanted.read(part, expected));
    if (comparing.progress != nullptr) comparing.progress->add(there.size());
    if (same_bytes(there, expected)) {
      if (comparing.compared != nullptr) *comparing.compared += elements;
      continue;
    }
    if (comparing.mismatch != nullptr && there.size() == expected.size()) {
      for (std::size_t d = 0; d < part.offsets.size(); ++d)
        part.offsets[d] += result.offsets(comparing.at)[d];
      *comparing.mismatch = first_mismatch(dtype, part, there, expected);
    }
    return differs(comparing, what);
  }
  return seen == volume(box.sizes) ? Status{} : Status(differs(comparing, what));
}

// What boxes of a written chunk should hold.
struct PayloadComparison {
  const PlannedTensor& tensor;
  const PlannedChunk& chunk;
  const Comparing& comparing;
  BoxReader& source = comparing.source;
  Dtype dtype = source.checkpoint().dtype(tensor.tensor);

  Status compare_piece(const Piece& piece) {
    Box box{piece.at, sizes_in_new(piece)};
    WantedPart wanted;
    wanted.read = [&](const Box& part, Bytes& to) {
      return read_piece(piece, part, source, size_of(dtype), to);
    };
    wanted.is_zeros = [&](const Box& part) {
      return source.is_hole(piece.chunk, source_of(piece, part));
    };
    return each_block(comparing, box, fastest_first(piece.permutation), "a tile", wanted);
  }

  Status compare_side(const ExternalPiece& side) {
    SHW_TRY(auto file, source.checkpoint().directory()->open(side.file));
    WantedPart wanted;
    wanted.read = [&](const Box& part, Bytes& to) -> Status {
      Box box = part;
      for (std::size_t d = 0; d < box.offsets.size(); ++d) box.offsets[d] -= side.at[d];
      SHW_CHECK(read_box(*file, side.offset, side.sizes, box, size_of(side.dtype), to));
      SHW_TRY(to, cast_elements(side.dtype, to, dtype));
      return {};
    };
    return each_block(comparing, {side.at, side.sizes}, {}, "a tile", wanted);
  }

  // `common` of the tensor, which a tile of another one holds too, cast.
  Status compare_cast(const Box& common, BoxReader& holder, ChunkId id) {
    const Checkpoint& other = holder.checkpoint();
    Extents from_tile(common.offsets.size());
    Box here = common;
    for (std::size_t d = 0; d < here.offsets.size(); ++d) {
      from_tile[d] = chunk.box.offsets[d] - other.offsets(id)[d];
      here.offsets[d] -= chunk.box.offsets[d];
    }
    WantedPart wanted;
    wanted.read = [&](const Box& part, Bytes& to) -> Status {
      Box inside = part;
      for (std::size_t d = 0; d < inside.offsets.size(); ++d) inside.offsets[d] += from_tile[d];
      SHW_CHECK(holder.read(id, inside, to));
      SHW_TRY(to, cast_elements(other.dtype(other.tensor_of(id)), to, dtype));
      return {};
    };
    return each_block(comparing, here, {}, "a tile", wanted);
  }

  // The same box of another tensor: all of it, and of elements that lie there twice the last one.
  Status compare_filled(const Box& box, BoxReader& holder, TensorId from) {
    const Checkpoint& other = holder.checkpoint();
    std::vector<Box> open{box};
    for (std::size_t d = 0; d < box.offsets.size(); ++d)
      open.front().offsets[d] += chunk.box.offsets[d];
    auto chunks = other.chunks(from);
    for (std::uint32_t i = chunks.size(); i-- > 0;) {
      Box saved = box_of(other, chunks[i]);
      std::vector<Box> left;
      for (const Box& part : open) {
        if (saved.offsets.size() != part.offsets.size()) return differs(comparing, "a fill");
        auto common = part.sizes.empty() ? std::optional<Box>(part) : intersect(saved, part);
        if (!common) {
          left.push_back(part);
          continue;
        }
        SHW_CHECK(compare_cast(*common, holder, chunks[i]));
        if (part.sizes.empty()) continue;
        for (Box& rest : subtract(part, *common)) left.push_back(std::move(rest));
      }
      open = std::move(left);
    }
    return open.empty() ? Status{} : Status(differs(comparing, "the fill of a tile"));
  }

  Status compare_rest() {
    SHW_TRY(std::vector<Box> rest, rest_of(source.checkpoint(), tensor, chunk));
    WantedPart zeros;
    zeros.read = [&](const Box& part, Bytes& to) -> Status {
      to.assign(static_cast<std::size_t>(*volume(part.sizes)) * size_of(dtype), std::byte{0});
      return {};
    };
    zeros.is_zeros = [](const Box&) { return true; };
    if (tensor.fill == Fill::kZero) {
      for (const Box& box : rest)
        SHW_CHECK(each_block(comparing, box, {}, "the fill of a tile", zeros));
      return {};
    }
    bool elsewhere = tensor.fill == Fill::kReference && tensor.fill_source != nullptr;
    const Checkpoint& holder = elsewhere ? *tensor.fill_source : source.checkpoint();
    auto from = holder.find(tensor.fill_from);
    if (!from && rest.empty()) return {};
    if (!from) return differs(comparing, "the fill of a tile");
    BoxReader reader(holder, source.decoded_bytes());
    for (const Box& box : rest) SHW_CHECK(compare_filled(box, reader, *from));
    return {};
  }
};

// Byte by byte, where elements cannot be told from each other.
Status compare_items(const Comparing& comparing, const ItemPlace& before) {
  const Checkpoint& result = comparing.written.checkpoint();
  auto now = result.item(comparing.at);
  if (!now) return differs(comparing, "a tile");
  SHW_TRY(std::string wanted, hash_item(comparing.source.checkpoint(), before, comparing.progress));
  SHW_TRY(std::string there, hash_item(result, *now, comparing.progress));
  if (there != wanted) return differs(comparing, "the item of a tile");
  if (comparing.compared != nullptr)
    *comparing.compared += volume(result.sizes(comparing.at)).value_or(0);
  return {};
}

}  // namespace

Status compare_payload(const PlannedTensor& tensor, const PlannedChunk& chunk,
                       const Comparing& comparing) {
  PayloadComparison comparison{tensor, chunk, comparing};
  if (!same(comparing.written.checkpoint().sizes(comparing.at), chunk.box.sizes))
    return differs(comparing, "the size of a tile");
  for (const Piece& piece : chunk.pieces) SHW_CHECK(comparison.compare_piece(piece));
  for (const ExternalPiece& side : chunk.external) SHW_CHECK(comparison.compare_side(side));
  return comparison.compare_rest();
}

Status compare_item(const Comparing& comparing, ChunkId item) {
  const Checkpoint &source = comparing.source.checkpoint(),
                   &result = comparing.written.checkpoint();
  auto header = comparing.source.header(item);
  Box box = whole(result.sizes(comparing.at));
  bool is_plain = header && same(header->sizes, box.sizes) &&
                  header->dtype == result.dtype(result.tensor_of(comparing.at));
  auto place = source.item(item);
  if (is_plain) {
    WantedPart wanted;
    wanted.read = [&](const Box& part, Bytes& to) {
      return comparing.source.read_item(item, part, to);
    };
    wanted.is_zeros = [&](const Box& part) { return comparing.source.is_hole(item, part); };
    return each_block(comparing, box, {}, "a tile", wanted);
  }
  if (!place) return differs(comparing, "a tile without an item");
  return compare_items(comparing, *place);
}

Status compare_kept(const Comparing& comparing, const PlannedChunk& chunk) {
  const Checkpoint& source = comparing.source.checkpoint();
  auto elsewhere = place_elsewhere(source, chunk);
  if (!elsewhere) return compare_item(comparing, *chunk.item);
  auto header = read_orphan_header(source, *chunk.item, *elsewhere);
  std::size_t element = size_of(source.dtype(source.tensor_of(*chunk.item)));
  bool is_plain = header && same(header->sizes, chunk.box.sizes) && !header->compressed &&
                  !header->big_endian && !header->conjugate && !header->negative &&
                  header->storage_offset == 0 &&
                  header->strides == row_major_strides(header->sizes) &&
                  size_of(header->dtype) == element;
  if (!is_plain) return compare_items(comparing, *elsewhere);
  SHW_TRY(auto file, source.directory()->open(source.file(elsewhere->file).path));
  WantedPart wanted;
  wanted.read = [&](const Box& part, Bytes& to) {
    return read_box(*file, header->payload_offset, chunk.box.sizes, part, element, to);
  };
  return each_block(comparing, whole(chunk.box.sizes), {}, "a tile", wanted);
}

}  // namespace shw
