#include "core/hdf5_view/mapped_tile.h"

#include <fmt/core.h>

#include "core/base/checked.h"

namespace shw {
namespace {

// Segments are read file by file; above this number a virtual dataset is faster.
constexpr std::int64_t kRunsOfATile = 64;
// Limit of one list; the library allows 2,729.
constexpr std::int64_t kMostRuns = 2048;

// A dimension of a view, sorted by decreasing stride; contiguous neighbours are merged.
struct ViewDim {
  std::int64_t size = 1, stride = 1;
};

std::vector<ViewDim> merged_view_dims(const ItemHeader& header) {
  std::vector<ViewDim> dims;
  for (std::size_t d = 0; d < header.sizes.size(); ++d) {
    ViewDim dim{header.sizes[d], header.strides[d]};
    if (dim.size == 1) continue;
    if (!dims.empty() && dims.back().stride == dim.size * dim.stride)
      dims.back() = {dims.back().size * dim.size, dim.stride};
    else
      dims.push_back(dim);
  }
  return dims;
}

// True if the storage is in row-major order, possibly with gaps.
bool is_in_order(const std::vector<ViewDim>& dims) {
  std::int64_t reach = 1;
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (dims[d].stride < reach) return false;
    reach = (dims[d].size - 1) * dims[d].stride + reach;
  }
  return true;
}

// Offset in elements for an index over the outer dimensions.
std::int64_t place_of(const std::vector<ViewDim>& dims, std::size_t outer, std::int64_t index) {
  std::int64_t at = 0;
  for (std::size_t d = outer; d-- > 0;) {
    at += index % dims[d].size * dims[d].stride;
    index /= dims[d].size;
  }
  return at;
}

MappingFailure not_mappable(std::string why) {
  return {true, std::move(why)};
}

// The contiguous runs of a view; `first` is the byte offset of its first element.
std::variant<MappedTile, MappingFailure> runs_of(const std::vector<ViewDim>& dims, FileId file,
                                                 std::uint64_t first, std::int64_t element) {
  MappedTile tile;
  const std::int64_t run = !dims.empty() && dims.back().stride == 1 ? dims.back().size : 1;
  const std::size_t outer = dims.size() - (run > 1 ? 1 : 0);
  std::int64_t count = 1;  // product of sizes, already checked by volume()
  for (std::size_t d = 0; d < outer; ++d) count *= dims[d].size;
  const bool in_order = is_in_order(dims);
  if (outer == 1 && count > kRunsOfATile && in_order) {
    tile.count = count;
    tile.step = dims[0].stride;
    tile.run = run;
    std::int64_t reach = (count - 1) * tile.step + run;
    tile.runs.push_back({file, first, static_cast<std::uint64_t>(reach * element)});
    return tile;
  }
  if (count > kMostRuns && !in_order)
    return not_mappable("its elements are not in row-major order");
  if (count > kMostRuns)
    return not_mappable(fmt::format("its elements are in {} runs, and HDF5 takes {} of a dataset",
                                    count, kMostRuns));
  for (std::int64_t i = 0; i < count; ++i) {
    auto at = static_cast<std::uint64_t>(place_of(dims, outer, i) * element);
    tile.runs.push_back({file, first + at, static_cast<std::uint64_t>(run * element)});
  }
  return tile;
}

// The header describes the layout; open_item() has checked that it is within the payload.
std::variant<MappedTile, MappingFailure> map_item(const Checkpoint& checkpoint, FileId file,
                                                  const ItemHeader& header) {
  if (header.compressed) return not_mappable("it is compressed");
  if (header.conjugate || header.negative)
    return not_mappable("its bytes hold conjugated or negated values");
  const std::int64_t element = size_of(header.dtype);
  if (header.big_endian && element > 1) return not_mappable("its bytes are big-endian");
  std::vector<ViewDim> dims = merged_view_dims(header);
  auto begin = checked_add(static_cast<std::int64_t>(header.payload_offset),
                           header.storage_offset * element);
  std::int64_t reach = 1;
  for (const ViewDim& dim : dims) reach += (dim.size - 1) * dim.stride;
  auto end = begin ? checked_add(*begin, reach * element) : std::nullopt;
  const std::uint64_t size = checkpoint.file(file).size;
  if (!end || *begin < 0 || static_cast<std::uint64_t>(*end) > size)
    return MappingFailure{false, fmt::format("{} ends at byte {}, before its elements do",
                                             checkpoint.file(file).path, size)};
  return runs_of(dims, file, static_cast<std::uint64_t>(*begin), element);
}

std::string in_words(const Error& error) {
  std::string text = error.place.file.empty() ? "" : error.place.file + " ";
  text += error.message;
  if (error.place.offset) text += fmt::format(" (byte {})", *error.place.offset);
  return text;
}

std::variant<MappedTile, MappingFailure> map_header(const Checkpoint& checkpoint, ChunkId chunk,
                                                    FileId file, const Result<ItemHeader>& header) {
  const Dtype dtype = checkpoint.dtype(checkpoint.tensor_of(chunk));
  if (!header) return MappingFailure{false, in_words(header.error())};
  if (header->dtype != dtype || !same(header->sizes, checkpoint.sizes(chunk)))
    return MappingFailure{false, fmt::format("an item holds {} of {} where {} of {} is recorded",
                                             to_text(header->sizes), name(header->dtype),
                                             to_text(checkpoint.sizes(chunk)), name(dtype))};
  auto mapped = map_item(checkpoint, file, *header);
  if (auto* tile = std::get_if<MappedTile>(&mapped)) tile->box = box_of(checkpoint, chunk);
  return mapped;
}

}  // namespace

std::variant<MappedTile, MappingFailure> map_tile(const Checkpoint& checkpoint, ChunkId chunk) {
  auto place = checkpoint.item(chunk);
  return map_header(checkpoint, chunk, place ? place->file : FileId::kNone,
                    read_item_header(checkpoint, chunk));
}

std::variant<MappedTile, MappingFailure> map_copy(const Checkpoint& checkpoint, ChunkId chunk,
                                                  const ItemPlace& place) {
  return map_header(checkpoint, chunk, place.file, read_orphan_header(checkpoint, chunk, place));
}

}  // namespace shw
