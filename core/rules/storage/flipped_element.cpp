#include "core/rules/storage/flipped_element.h"

#include <fmt/core.h>

#include <array>
#include <span>

#include "core/base/words.h"
#include "core/formats/zip/flipped_bit.h"
#include "core/tensor/element_text.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// True if the record is the tile's payload: its elements unchanged and row-major.
bool is_own_payload(const Checkpoint& checkpoint, ChunkId chunk, const ItemHeader& header,
                    const DataCheck& check) {
  const auto elements = volume(header.sizes);
  const std::uint64_t size = size_of(header.dtype);
  return size != 0 && elements && !header.compressed && !header.big_endian && !header.conjugate &&
         !header.negative && header.storage_offset == 0 &&
         header.dtype == checkpoint.dtype(checkpoint.tensor_of(chunk)) &&
         same(header.sizes, checkpoint.sizes(chunk)) &&
         is_row_major(header.sizes, header.strides) &&
         check.record_offset == header.payload_offset &&
         check.record_length == header.payload_length &&
         header.payload_length == static_cast<std::uint64_t>(*elements) * size;
}

// Indices in the tensor of element `index` of the tile.
Extents element_indices(const Checkpoint& checkpoint, ChunkId chunk, std::uint64_t index) {
  Extents place = copy_of(checkpoint.offsets(chunk));
  ExtentsView sizes = checkpoint.sizes(chunk);
  for (std::size_t d = sizes.size(); d-- > 0;) {
    const auto size = static_cast<std::uint64_t>(sizes[d]);
    place[d] += static_cast<std::int64_t>(index % size);
    index /= size;
  }
  return place;
}

}  // namespace

std::optional<FlippedElement> flipped_element(const Facts& facts, TensorId tensor, ChunkId chunk,
                                              const DataCheck& check) {
  const Checkpoint& c = facts.checkpoint;
  const auto item = c.item(chunk);
  if (facts.headers.empty() || !item || c.directory() == nullptr) return std::nullopt;
  const Result<ItemHeader> header = facts.headers[index_of(chunk)];
  if (!header || !is_own_payload(c, chunk, *header, check)) return std::nullopt;
  const auto flipped = flipped_bit(check.expected, check.actual, check.record_length);
  if (!flipped) return std::nullopt;
  const std::uint64_t size = size_of(header->dtype), index = flipped->byte / size;
  const std::string& path = c.file(item->file).path;
  auto source = c.directory()->open(path);
  std::array<std::byte, 16> element{};
  const auto bytes = std::span(element).first(size);
  if (!source || !(*source)->read(check.record_offset + index * size, bytes)) return std::nullopt;
  const std::string now = element_text(header->dtype, bytes, 0);
  element[flipped->byte % size] ^= static_cast<std::byte>(1u << flipped->bit);
  const std::string before = element_text(header->dtype, bytes, 0);
  FlippedElement found;
  found.text = fmt::format("{} {}: {} where {} was: bit {} of byte {} of {}", c.fqn(tensor),
                           to_text(element_indices(c, chunk, index)), now, before, flipped->bit,
                           human_count(check.record_offset + flipped->byte), path);
  found.chance = static_cast<double>(check.record_length) * 8 / 4294967296.0;
  return found;
}

}  // namespace shw
