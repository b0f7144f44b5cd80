#include "core/facts/reference/tile_content.h"

#include <algorithm>
#include <cstring>

#include "core/base/checked.h"
#include "core/facts/reference/block_order.h"
#include "core/facts/values/value_reader.h"
#include "core/tensor/cast.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::int64_t kStartBytes = 4096;  // one page, the minimum cost of a read
constexpr std::int64_t kSlabBytes = std::int64_t{16} << 20;

// The first rows of a box up to `bytes`, at least one element.
Extents leading_rows_within_bytes(const Extents& sizes, std::int64_t bytes, std::int64_t element) {
  Extents out(sizes.size(), 1);
  std::int64_t left = std::max<std::int64_t>(1, bytes / element);
  for (std::size_t d = sizes.size(); d-- > 0 && left > 1;) {
    out[d] = std::min(sizes[d], left);
    left = out[d] == sizes[d] ? left / std::max<std::int64_t>(1, sizes[d]) : 1;
  }
  return out;
}

// Calls `visit` with slabs of a box in row-major order until it returns false.
template <class Visit>
bool for_each_row_slab(const Extents& sizes, std::int64_t element, Visit visit) {
  Extents step = leading_rows_within_bytes(sizes, kSlabBytes, element);
  Box slab{Extents(sizes.size(), 0), step};
  while (true) {
    for (std::size_t d = 0; d < sizes.size(); ++d)
      slab.sizes[d] = std::min(step[d], sizes[d] - slab.offsets[d]);
    if (!visit(slab)) return false;
    std::size_t d = sizes.size();
    while (d > 0) {
      --d;
      slab.offsets[d] += step[d];
      if (slab.offsets[d] < sizes[d]) break;
      slab.offsets[d] = 0;
      if (d == 0) return true;
    }
    if (sizes.empty()) return true;
  }
}

void collect_values(BytesView bytes, std::size_t element, std::set<std::uint64_t>& values) {
  std::uint64_t last = 0;
  for (std::size_t at = 0; at + element <= bytes.size() && values.size() < kMaxValues;
       at += element) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, std::min(element, sizeof bits));
    if (bits != last && bits != 0) values.insert(bits);
    last = bits;
  }
}

// Reads a box slab by slab with `read`.
template <class Read>
std::optional<BoxContent> content(const Extents& sizes, std::size_t element, Read read) {
  BoxContent out;
  bool whole = for_each_row_slab(sizes, static_cast<std::int64_t>(element), [&](const Box& slab) {
    std::optional<Bytes> bytes = read(slab);
    if (!bytes) return false;
    collect_values(*bytes, element, out.values);
    std::string chained = out.hash + content_hash(*bytes);
    out.hash = content_hash(std::as_bytes(std::span(chained)));
    return true;
  });
  return whole ? std::optional(std::move(out)) : std::nullopt;
}

Box shifted_by(const Extents& offsets, Box box) {
  for (std::size_t d = 0; d < offsets.size(); ++d) box.offsets[d] += offsets[d];
  return box;
}

}  // namespace

std::optional<Dtype> common_dtype(Dtype a, Dtype b) {
  if (size_of(a) == 0 || size_of(b) == 0) return std::nullopt;
  if (a == b) return a;
  if (!has_values(a) || !has_values(b) || size_of(a) == size_of(b)) return std::nullopt;
  Dtype narrow = size_of(a) < size_of(b) ? a : b, wide = narrow == a ? b : a;
  return can_cast(wide, narrow) ? std::optional(narrow) : std::nullopt;
}

TensorBoxes::TensorBoxes(const Checkpoint& checkpoint, TensorId tensor, Dtype dtype,
                         Progress* progress, std::uint64_t decoded_bytes)
    : checkpoint_(checkpoint),
      tensor_(tensor),
      own_(checkpoint.dtype(tensor)),
      dtype_(dtype),
      progress_(progress),
      items_(checkpoint, decoded_bytes) {
  for (ChunkId chunk : checkpoint.chunks(tensor))
    by_box_.emplace(Key{copy_of(checkpoint.offsets(chunk)), copy_of(checkpoint.sizes(chunk))},
                    chunk);
}

std::optional<Bytes> TensorBoxes::cast(Result<Bytes> bytes) const {
  if (!bytes) return std::nullopt;
  if (own_ == dtype_) return std::move(*bytes);
  auto out = cast_elements(own_, *bytes, dtype_);
  return out ? std::optional<Bytes>(std::move(*out)) : std::nullopt;
}

// nullopt after cancellation.
std::optional<Bytes> TensorBoxes::counted(std::optional<Bytes> bytes) const {
  if (is_cancelled(progress_)) return std::nullopt;
  if (progress_ != nullptr && bytes) progress_->add(bytes->size());
  return bytes;
}

// The items that intersect the box, mostly a single one.
std::vector<ChunkId> TensorBoxes::chunks_in(const Box& box) const {
  auto found = by_box_.find(Key{box.offsets, box.sizes});
  if (found != by_box_.end()) return {found->second};
  std::vector<ChunkId> out;
  for (ChunkId chunk : checkpoint_.chunks(tensor_)) {
    Box saved = box_of(checkpoint_, chunk);
    if (intersect(saved, box)) out.push_back(chunk);
  }
  return out;
}

// Assembles the box from the items; nullopt if they do not cover it.
std::optional<Bytes> TensorBoxes::read(const std::vector<ChunkId>& chunks, const Box& box) {
  std::size_t element = size_of(own_);
  auto elements = volume(box.sizes);
  if (!elements) return std::nullopt;
  std::optional<Bytes> out;
  Extents dense = row_major_strides(box.sizes);
  std::int64_t filled = 0;
  for (ChunkId chunk : chunks) {
    Box saved = box_of(checkpoint_, chunk);
    auto common = intersect(saved, box);
    if (!common) continue;
    Box inside = *common;
    std::int64_t first = 0;
    for (std::size_t d = 0; d < dense.size(); ++d) {
      inside.offsets[d] -= saved.offsets[d];
      first += (common->offsets[d] - box.offsets[d]) * dense[d];
    }
    auto header = items_.header(chunk);
    if (!header || header->dtype != own_ || header->sizes != saved.sizes) return std::nullopt;
    auto part = items_.read_item(chunk, inside);
    if (!part) return std::nullopt;
    if (common->sizes == box.sizes) return cast(std::move(part));
    if (!out) out.emplace(static_cast<std::size_t>(*elements) * element);
    Extents strides = row_major_strides(common->sizes);
    copy_strided({*part, strides, 0}, {*out, dense, first}, common->sizes, element);
    filled += volume(common->sizes).value_or(0);
  }
  if (!out || filled != *elements) return std::nullopt;
  return cast(std::move(*out));
}

std::optional<Bytes> TensorBoxes::start(const Box& box) {
  return read(chunks_in(box),
              {box.offsets, leading_rows_within_bytes(box.sizes, kStartBytes, size_of(dtype_))});
}

std::optional<std::string> TensorBoxes::start_of(const Box& box) {
  auto [found, added] = starts_.try_emplace(Key{box.offsets, box.sizes});
  if (!added) return found->second;
  if (auto bytes = start(box)) found->second = content_hash(*bytes);
  return found->second;
}

std::optional<BoxContent> TensorBoxes::content_of(const Box& box) {
  auto [found, added] = contents_.try_emplace(Key{box.offsets, box.sizes});
  if (!added) return found->second;
  std::vector<ChunkId> chunks = chunks_in(box);
  found->second = content(box.sizes, size_of(dtype_), [&](const Box& slab) {
    return counted(read(chunks, shifted_by(box.offsets, slab)));
  });
  return found->second;
}

std::optional<Bytes> TensorBoxes::start(ChunkId chunk, const Extents& sizes) {
  return cast(items_.read_item(
      chunk,
      {Extents(sizes.size(), 0), leading_rows_within_bytes(sizes, kStartBytes, size_of(dtype_))}));
}

std::optional<std::string> TensorBoxes::start_of(ChunkId chunk, const Extents& sizes) {
  auto bytes = start(chunk, sizes);
  return bytes ? std::optional(content_hash(*bytes)) : std::nullopt;
}

std::optional<BoxContent> TensorBoxes::content_of(ChunkId chunk, const Extents& sizes) {
  return content(sizes, size_of(dtype_),
                 [&](const Box& slab) { return counted(cast(items_.read_item(chunk, slab))); });
}

std::optional<Bytes> TensorBoxes::part(ChunkId chunk, const Box& inside) {
  return cast(items_.read_item(chunk, inside));
}

std::set<std::uint64_t> TensorBoxes::values_at_start(ChunkId chunk, const Extents& sizes) {
  std::set<std::uint64_t> values;
  if (auto bytes = start(chunk, sizes)) collect_values(*bytes, size_of(dtype_), values);
  return values;
}

}  // namespace shw
