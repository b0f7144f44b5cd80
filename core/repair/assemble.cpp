#include "core/repair/assemble.h"

#include <algorithm>
#include <cstring>

#include "core/base/checked.h"
#include "core/formats/crc32.h"
#include "core/repair/cast.h"
#include "core/repair/lower.h"
#include "core/repair/tiling.h"

namespace shw {
namespace {

constexpr std::uint64_t kSlabBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kCacheBytes = std::uint64_t{1} << 30;

// One row of the innermost dimension at a time: source and destination are row-major arrays of
// `source_sizes` and `target_sizes`.
template <class Row>
void each_row(const Extents& sizes, const Extents& source_sizes, const Extents& source_at,
              const Extents& target_sizes, const Extents& target_at, Row row) {
  if (volume(sizes).value_or(0) == 0) return;
  std::size_t ndim = sizes.size();
  Extents source_strides = row_major_strides(source_sizes);
  Extents target_strides = row_major_strides(target_sizes);
  Extents at(ndim, 0);
  while (true) {
    std::int64_t source = 0, target = 0;
    for (std::size_t d = 0; d < ndim; ++d) {
      source += (source_at[d] + at[d]) * source_strides[d];
      target += (target_at[d] + at[d]) * target_strides[d];
    }
    row(static_cast<std::size_t>(source), static_cast<std::size_t>(target),
        static_cast<std::size_t>(ndim == 0 ? 1 : sizes[ndim - 1]));
    std::size_t d = ndim < 2 ? 0 : ndim - 1;
    while (d-- > 0) {
      if (++at[d] < sizes[d]) break;
      at[d] = 0;
      if (d == 0) return;
    }
    if (ndim < 2) return;
  }
}

// Values that go into a box of the new chunk, already in the tensor's dtype.
struct Part {
  Box to;                // chunk-local
  Extents source_sizes;  // of the array that `bytes` holds
  Extents source_at;
  std::shared_ptr<const Bytes> bytes;
};

Result<std::shared_ptr<const Bytes>> read_side(const Checkpoint& checkpoint, const SidePiece& side,
                                               Dtype to) {
  SHW_TRY(auto source, checkpoint.directory()->open(side.file));
  SHW_TRY(Bytes raw, read_bytes(*source, side.offset, side.length));
  SHW_TRY(Bytes cast, cast_elements(side.dtype, raw, to));
  return std::make_shared<const Bytes>(std::move(cast));
}

// The rest of a chunk that no piece covers, in chunk coordinates.
Result<std::vector<Box>> rest_of(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                                 const PlannedChunk& chunk) {
  std::vector<Box> covered;
  for (const Piece& piece : chunk.pieces) covered.push_back({piece.at, piece.source.sizes});
  for (const SidePiece& side : chunk.side) covered.push_back({side.at, side.sizes});
  auto rest = complement(covered, chunk.box.sizes);
  if (!rest) return cannot_lower(checkpoint, tensor.tensor, "what is lost is in too many pieces");
  return std::move(*rest);
}

// What of the chunk's rows [begin, end) along the first dimension comes from where.
struct Gatherer {
  const Checkpoint& checkpoint;
  const PlannedTensor& tensor;
  const PlannedChunk& chunk;
  ChunkCache& cache;
  std::vector<Box> filled = {};                        // from another tensor
  std::shared_ptr<ChunkCache> source_cache = nullptr;  // of another checkpoint's chunks

  Status each_part(const Box& slab, const std::function<void(const Part&)>& visit) {
    auto offer = [&](const Box& to, const Extents& source_sizes, const Extents& source_at,
                     const std::shared_ptr<const Bytes>& bytes) {
      Box common = to.sizes.empty() ? to : intersect(to, slab).value_or(Box{});
      Part part{common, source_sizes, source_at, bytes};
      for (std::size_t d = 0; d < common.offsets.size(); ++d)
        part.source_at[d] += common.offsets[d] - to.offsets[d];
      visit(part);
    };
    auto touches = [&](const Box& to) { return to.sizes.empty() || intersect(to, slab); };
    Dtype dtype = checkpoint.dtype(tensor.tensor);
    for (const Piece& piece : chunk.pieces) {
      Box to{piece.at, piece.source.sizes};
      if (!touches(to)) continue;
      SHW_TRY(auto bytes, cache.read(piece.chunk));
      offer(to, copy_of(checkpoint.sizes(piece.chunk)), piece.source.offsets, bytes);
    }
    for (const SidePiece& side : chunk.side) {
      Box to{side.at, side.sizes};
      if (!touches(to)) continue;
      SHW_TRY(auto bytes, read_side(checkpoint, side, dtype));
      offer(to, side.sizes, Extents(side.sizes.size(), 0), bytes);
    }
    for (const Box& box : filled) {
      if (touches(box)) SHW_CHECK(each_cast(box, slab, offer));
    }
    return {};
  }

  // The same box of fill_from, chunk by chunk, cast.
  template <class Offer>
  Status each_cast(const Box& box, const Box& slab, Offer offer) {
    bool from_elsewhere = tensor.fill == Fill::kReference;
    const Checkpoint& holder = from_elsewhere ? *tensor.fill_source : checkpoint;
    ChunkCache& holder_cache = from_elsewhere ? *source_cache : cache;
    auto source = holder.find(tensor.fill_from);
    if (!source) return cannot_lower(checkpoint, tensor.tensor, "there is nothing to fill it from");
    Box wanted = box.sizes.empty() ? box : *intersect(box, slab);
    for (std::size_t d = 0; d < wanted.offsets.size(); ++d)
      wanted.offsets[d] += chunk.box.offsets[d];
    std::int64_t found = 0;
    for (ChunkId id : holder.chunks(*source)) {
      Box saved = box_of(holder, id);
      if (saved.offsets.size() != wanted.offsets.size()) continue;
      auto common = wanted.sizes.empty() ? std::optional<Box>(wanted) : intersect(saved, wanted);
      if (!common) continue;
      SHW_TRY(auto bytes, holder_cache.read(id));
      SHW_TRY(Bytes cast,
              cast_elements(holder.dtype(*source), *bytes, checkpoint.dtype(tensor.tensor)));
      Box to = *common;
      Extents source_at(to.offsets.size(), 0);
      for (std::size_t d = 0; d < to.offsets.size(); ++d) {
        source_at[d] = to.offsets[d] - saved.offsets[d];
        to.offsets[d] -= chunk.box.offsets[d];
      }
      found += volume(to.sizes).value_or(0);
      offer(to, saved.sizes, source_at, std::make_shared<const Bytes>(std::move(cast)));
    }
    if (from_elsewhere && found != volume(wanted.sizes))
      return cannot_lower(checkpoint, tensor.tensor, "what it would be filled from has holes");
    return {};
  }
};

Result<Gatherer> gatherer(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                          const PlannedChunk& chunk, ChunkCache& cache) {
  Gatherer made{checkpoint, tensor, chunk, cache};
  if (tensor.fill == Fill::kZero) return made;
  if (tensor.fill == Fill::kReference) {
    if (tensor.fill_source == nullptr)
      return cannot_lower(checkpoint, tensor.tensor, "there is nothing to fill it from");
    made.source_cache = std::make_shared<ChunkCache>(*tensor.fill_source);
  }
  SHW_TRY(made.filled, rest_of(checkpoint, tensor, chunk));
  return made;
}

// [begin, begin + rows) of the first dimension of the chunk.
Box slab_of(const PlannedChunk& chunk, std::int64_t begin, std::int64_t rows) {
  Box slab = whole(chunk.box.sizes);
  if (slab.sizes.empty()) return slab;
  slab.offsets[0] = begin;
  slab.sizes[0] = rows;
  return slab;
}

Result<std::uint32_t> write_payload(Gatherer from, std::uint64_t element, ByteSink& sink,
                                    Progress* progress) {
  const Extents& sizes = from.chunk.box.sizes;
  std::int64_t extent = sizes.empty() ? 1 : sizes[0];
  auto total = static_cast<std::uint64_t>(volume(sizes).value_or(0)) * element;
  std::uint64_t row_bytes = extent == 0 ? 0 : total / static_cast<std::uint64_t>(extent);
  auto step = static_cast<std::int64_t>(
      std::clamp<std::uint64_t>(kSlabBytes / std::max<std::uint64_t>(row_bytes, 1), 1, 1u << 30));
  // A chunk that is filled with zeros alone, however large, costs nothing.
  bool only_zeros = from.chunk.pieces.empty() && from.chunk.side.empty() && from.filled.empty();
  if (only_zeros) {
    SHW_CHECK(sink.skip(total));
    return crc32_of_zeros(0, total);
  }
  std::uint32_t crc = 0;
  for (std::int64_t begin = 0; begin < extent && total != 0; begin += step) {
    if (is_cancelled(progress)) return cancelled_error();
    std::int64_t rows = std::min(step, extent - begin);
    Box slab = slab_of(from.chunk, begin, rows);
    Bytes out(static_cast<std::uint64_t>(rows) * row_bytes);
    SHW_CHECK(from.each_part(slab, [&](const Part& part) {
      Extents target_at = part.to.offsets;
      if (!target_at.empty()) target_at[0] -= begin;
      each_row(part.to.sizes, part.source_sizes, part.source_at, slab.sizes, target_at,
               [&](std::size_t source, std::size_t target, std::size_t count) {
                 std::memcpy(out.data() + target * element, part.bytes->data() + source * element,
                             count * element);
               });
    }));
    SHW_CHECK(sink.write(out));
    crc = crc32_of(out, crc);
    if (progress != nullptr) progress->add(out.size());
  }
  return crc;
}

}  // namespace

Result<std::shared_ptr<const Bytes>> ChunkCache::read(ChunkId chunk) {
  if (auto found = kept_.find(chunk); found != kept_.end()) return found->second;
  SHW_TRY(Bytes bytes, read_chunk(checkpoint_, chunk));
  // The payload is what the header says; a piece was cut by what the metadata says.
  auto elements = volume(checkpoint_.sizes(chunk));
  std::uint64_t element = size_of(checkpoint_.dtype(checkpoint_.tensor_of(chunk)));
  if (!elements || bytes.size() != static_cast<std::uint64_t>(*elements) * element) {
    return fail(ErrorKind::kDamaged, "the item holds another number of bytes than its tile",
                {checkpoint_.file(checkpoint_.item(chunk)->file).path, std::nullopt,
                 std::string(checkpoint_.fqn(checkpoint_.tensor_of(chunk)))});
  }
  if (bytes_ + bytes.size() > kCacheBytes) {
    kept_.clear();
    bytes_ = 0;
  }
  bytes_ += bytes.size();
  auto shared = std::make_shared<const Bytes>(std::move(bytes));
  kept_.emplace(chunk, shared);
  return shared;
}

PayloadWriter payload_of(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                         const PlannedChunk& chunk, ChunkCache& cache, Progress* progress) {
  std::uint64_t element = size_of(checkpoint.dtype(tensor.tensor));
  PayloadWriter writer;
  writer.length = static_cast<std::uint64_t>(volume(chunk.box.sizes).value_or(0)) * element;
  writer.write = [&checkpoint, &tensor, &chunk, &cache, element,
                  progress](ByteSink& sink) -> Result<std::uint32_t> {
    SHW_TRY(Gatherer from, gatherer(checkpoint, tensor, chunk, cache));
    return write_payload(from, element, sink, progress);
  };
  return writer;
}

Status compare_payload(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                       const PlannedChunk& chunk, ChunkCache& cache, BytesView written) {
  std::uint64_t element = size_of(checkpoint.dtype(tensor.tensor));
  auto differs = [&](const std::string& what) {
    return fail(ErrorKind::kIo, what + " differs from its source after it was written",
                Place{.file = {}, .tensor = std::string(checkpoint.fqn(tensor.tensor))});
  };
  if (written.size() != static_cast<std::uint64_t>(volume(chunk.box.sizes).value_or(0)) * element)
    return differs("the length of a tile");
  SHW_TRY(Gatherer from, gatherer(checkpoint, tensor, chunk, cache));
  bool equal = true;
  SHW_CHECK(from.each_part(whole(chunk.box.sizes), [&](const Part& part) {
    each_row(part.to.sizes, part.source_sizes, part.source_at, chunk.box.sizes, part.to.offsets,
             [&](std::size_t source, std::size_t target, std::size_t count) {
               equal =
                   equal && std::memcmp(part.bytes->data() + source * element,
                                        written.data() + target * element, count * element) == 0;
             });
  }));
  if (!equal) return differs("a tile");
  if (tensor.fill != Fill::kZero) return {};
  SHW_TRY(std::vector<Box> rest, rest_of(checkpoint, tensor, chunk));
  for (const Box& box : rest) {
    each_row(box.sizes, chunk.box.sizes, box.offsets, chunk.box.sizes, box.offsets,
             [&](std::size_t, std::size_t target, std::size_t count) {
               auto row = written.subspan(target * element, count * element);
               equal = equal && std::all_of(row.begin(), row.end(),
                                            [](std::byte b) { return b == std::byte{0}; });
             });
  }
  if (!equal) return differs("the fill of a tile");
  return {};
}

}  // namespace shw
