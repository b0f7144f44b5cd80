#include "core/repair/assemble.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "core/base/checked.h"
#include "core/formats/common/crc32.h"
#include "core/repair/lower.h"
#include "core/repair/reorder.h"
#include "core/tensor/cast.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

constexpr std::uint64_t kSlabBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kCacheBytes = std::uint64_t{1} << 30;

// Visits `sizes` in slabs that are runs of the row-major array, at most kSlabBytes each.
template <class Visit>
Status each_slab(const Extents& sizes, std::uint64_t element, Visit visit) {
  if (volume(sizes).value_or(0) == 0) return {};
  // The first dimension whose rows fit, and how many of them do.
  std::size_t cut = sizes.size();
  std::uint64_t row = std::max<std::uint64_t>(element, 1);
  while (cut > 0 && static_cast<std::uint64_t>(sizes[cut - 1]) <= kSlabBytes / row) {
    --cut;
    row *= static_cast<std::uint64_t>(sizes[cut]);
  }
  if (cut == 0) return visit(whole(sizes));
  std::size_t dim = cut - 1;
  auto step = static_cast<std::int64_t>(std::max<std::uint64_t>(kSlabBytes / row, 1));
  Box slab = whole(sizes);
  for (std::size_t d = 0; d < dim; ++d) slab.sizes[d] = 1;
  while (true) {
    for (std::int64_t begin = 0; begin < sizes[dim]; begin += step) {
      slab.offsets[dim] = begin;
      slab.sizes[dim] = std::min(step, sizes[dim] - begin);
      SHW_CHECK(visit(slab));
    }
    std::size_t d = dim;
    while (d-- > 0) {
      if (++slab.offsets[d] < sizes[d]) break;
      slab.offsets[d] = 0;
    }
    if (d == static_cast<std::size_t>(-1)) return {};
  }
}

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
  for (const Piece& piece : chunk.pieces) covered.push_back({piece.at, sizes_in_new(piece)});
  for (const SidePiece& side : chunk.side) covered.push_back({side.at, side.sizes});
  auto rest = complement(covered, chunk.box.sizes);
  if (!rest) return cannot_lower(checkpoint, tensor.tensor, "what is lost is in too many pieces");
  return std::move(*rest);
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

// What of the chunk's rows [begin, end) along the first dimension comes from where.
struct Gatherer {
  const Checkpoint& checkpoint;
  const PlannedTensor& tensor;
  const PlannedChunk& chunk;
  ChunkCache& cache;
  std::vector<Box> filled = {};                        // from another tensor
  std::shared_ptr<ChunkCache> source_cache = nullptr;  // of another checkpoint's chunks

  Status each_part(const Box& slab, const std::function<void(const Part&)>& visit) {
    auto common_of = [&](const Box& to) {
      return to.sizes.empty() ? to : intersect(to, slab).value_or(Box{});
    };
    auto offer = [&](const Box& to, const Extents& source_sizes, const Extents& source_at,
                     const std::shared_ptr<const Bytes>& bytes) {
      Part part{common_of(to), source_sizes, source_at, bytes};
      for (std::size_t d = 0; d < part.to.offsets.size(); ++d)
        part.source_at[d] += part.to.offsets[d] - to.offsets[d];
      visit(part);
    };
    auto touches = [&](const Box& to) { return to.sizes.empty() || intersect(to, slab); };
    Dtype dtype = checkpoint.dtype(tensor.tensor);
    for (const Piece& piece : chunk.pieces) {
      Box to{piece.at, sizes_in_new(piece)};
      if (!touches(to)) continue;
      Box common = common_of(to), source = source_of(piece, common);
      SHW_TRY(HeldBox held, cache.read_box(piece.chunk, source));
      if (piece.permutation.empty()) {
        visit(Part{common, held.sizes, held.at, held.bytes});
        continue;
      }
      Piece here{piece.chunk, {held.at, source.sizes}, common.offsets, piece.permutation};
      Bytes turned = in_new_order(here, common, held.sizes, *held.bytes, size_of(dtype));
      visit(Part{common, common.sizes, Extents(common.sizes.size(), 0),
                 std::make_shared<const Bytes>(std::move(turned))});
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

// The elements of one slab of the chunk, row-major; what no part covers is zero.
Result<Bytes> slab_of(Gatherer& from, std::uint64_t element, const Box& slab) {
  Bytes out(static_cast<std::uint64_t>(volume(slab.sizes).value_or(0)) * element);
  SHW_CHECK(from.each_part(slab, [&](const Part& part) {
    Extents target_at = part.to.offsets;
    for (std::size_t d = 0; d < target_at.size(); ++d) target_at[d] -= slab.offsets[d];
    each_row(part.to.sizes, part.source_sizes, part.source_at, slab.sizes, target_at,
             [&](std::size_t source, std::size_t target, std::size_t count) {
               std::memcpy(out.data() + target * element, part.bytes->data() + source * element,
                           count * element);
             });
  }));
  return out;
}

Result<std::uint32_t> write_payload(Gatherer from, std::uint64_t element, ByteSink& sink,
                                    Progress* progress) {
  const Extents& sizes = from.chunk.box.sizes;
  // A chunk that is filled with zeros alone, however large, costs nothing.
  bool only_zeros = from.chunk.pieces.empty() && from.chunk.side.empty() && from.filled.empty();
  if (only_zeros) {
    auto total = static_cast<std::uint64_t>(volume(sizes).value_or(0)) * element;
    SHW_CHECK(sink.skip(total));
    return crc32_of_zeros(0, total);
  }
  std::uint32_t crc = 0;
  auto write = [&](const Box& slab) -> Status {
    if (is_cancelled(progress)) return cancelled_error();
    SHW_TRY(Bytes out, slab_of(from, element, slab));
    SHW_CHECK(sink.write(out));
    crc = crc32_of(out, crc);
    if (progress != nullptr) progress->add(out.size());
    return {};
  };
  SHW_CHECK(each_slab(sizes, element, write));
  return crc;
}

class RunningHash {
 public:
  RunningHash() : state_(XXH3_createState(), &XXH3_freeState) { XXH3_128bits_reset(state_.get()); }
  void add(BytesView bytes) { XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()); }
  std::string text() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    std::string out;
    for (unsigned char byte : canonical.digest) {
      out += "0123456789abcdef"[byte >> 4];
      out += "0123456789abcdef"[byte & 15];
    }
    return out;
  }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

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

Result<HeldBox> ChunkCache::read_box(ChunkId chunk, const Box& box) {
  auto item = checkpoint_.item(chunk);
  bool large = item && item->length > static_cast<std::int64_t>(kSlabBytes);
  if (large && checkpoint_.encoding() == Encoding::kRaw) {
    SHW_TRY(Bytes bytes, read_raw_box(checkpoint_, chunk, box));
    return HeldBox{std::make_shared<const Bytes>(std::move(bytes)), box.sizes,
                   Extents(box.sizes.size(), 0)};
  }
  SHW_TRY(auto bytes, read(chunk));
  return HeldBox{std::move(bytes), copy_of(checkpoint_.sizes(chunk)), box.offsets};
}

Status compare_payload(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                       const PlannedChunk& chunk, ChunkCache& cache, ChunkCache& written,
                       ChunkId at) {
  std::uint64_t element = size_of(checkpoint.dtype(tensor.tensor));
  auto differs = [&](const std::string& what) {
    return fail(ErrorKind::kIo, what + " differs from its source after it was written",
                Place{.file = {}, .tensor = std::string(checkpoint.fqn(tensor.tensor))});
  };
  if (!same(written.checkpoint().sizes(at), chunk.box.sizes)) return differs("the size of a tile");
  SHW_TRY(Gatherer from, gatherer(checkpoint, tensor, chunk, cache));
  std::vector<Box> zeros;
  if (tensor.fill == Fill::kZero) {
    SHW_TRY(zeros, rest_of(checkpoint, tensor, chunk));
  }
  return each_slab(chunk.box.sizes, element, [&](const Box& slab) -> Status {
    SHW_TRY(HeldBox held, written.read_box(at, slab));
    auto row = [&](std::size_t target, std::size_t count) {
      return BytesView(*held.bytes).subspan(target * element, count * element);
    };
    auto place_of = [&](const Box& box) {
      Extents place = held.at;
      for (std::size_t d = 0; d < place.size(); ++d) place[d] += box.offsets[d] - slab.offsets[d];
      return place;
    };
    bool equal = true, empty = true;
    SHW_CHECK(from.each_part(slab, [&](const Part& part) {
      each_row(part.to.sizes, part.source_sizes, part.source_at, held.sizes, place_of(part.to),
               [&](std::size_t source, std::size_t target, std::size_t count) {
                 equal = equal && std::memcmp(part.bytes->data() + source * element,
                                              row(target, count).data(), count * element) == 0;
               });
    }));
    if (!equal) return differs("a tile");
    for (const Box& box : zeros) {
      auto common = box.sizes.empty() ? std::optional<Box>(box) : intersect(box, slab);
      if (!common) continue;
      Extents place = place_of(*common);
      each_row(common->sizes, held.sizes, place, held.sizes, place,
               [&](std::size_t, std::size_t target, std::size_t count) {
                 BytesView bytes = row(target, count);
                 empty = empty && std::all_of(bytes.begin(), bytes.end(),
                                              [](std::byte b) { return b == std::byte{0}; });
               });
    }
    if (!empty) return differs("the fill of a tile");
    return {};
  });
}

Result<std::string> hash_payload(const PlannedTensor& tensor, const PlannedChunk& chunk,
                                 ChunkCache& cache, Progress* progress) {
  const Checkpoint& checkpoint = cache.checkpoint();
  std::uint64_t element = size_of(checkpoint.dtype(tensor.tensor));
  SHW_TRY(Gatherer from, gatherer(checkpoint, tensor, chunk, cache));
  RunningHash hash;
  auto add = [&](const Box& slab) -> Status {
    if (is_cancelled(progress)) return cancelled_error();
    SHW_TRY(Bytes bytes, slab_of(from, element, slab));
    hash.add(bytes);
    return {};
  };
  SHW_CHECK(each_slab(chunk.box.sizes, element, add));
  return hash.text();
}

Result<std::string> hash_elements(ChunkCache& cache, ChunkId chunk, Progress* progress) {
  PlannedTensor tensor;
  tensor.tensor = cache.checkpoint().tensor_of(chunk);
  PlannedChunk all;
  all.box = whole(cache.checkpoint().sizes(chunk));
  all.pieces.push_back({chunk, all.box, Extents(all.box.sizes.size(), 0)});
  return hash_payload(tensor, all, cache, progress);
}

}  // namespace shw
