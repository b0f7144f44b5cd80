#include "core/formats/format_writer.h"

#include <algorithm>

#include "core/base/checked.h"

namespace shw {

const Checkpoint* source_if_of_writer_format(const Outputs& outputs, const FormatWriter& writer) {
  bool same_form = outputs.source != nullptr && outputs.source->format().writer == &writer;
  return same_form ? outputs.source : nullptr;
}

bool is_whole(const OutputTensor& tensor) {
  if (tensor.tiles.size() != 1 || !same(tensor.tiles[0].box.sizes, tensor.shape)) return false;
  const Extents& offsets = tensor.tiles[0].box.offsets;
  return std::all_of(offsets.begin(), offsets.end(), [](std::int64_t at) { return at == 0; });
}

std::optional<std::uint64_t> bytes_of(const OutputTensor& tensor, const OutputTile& tile) {
  auto elements = volume(tile.box.sizes);
  std::uint64_t size = size_of(tensor.dtype);
  if (!elements || size == 0) return std::nullopt;
  return checked_mul(static_cast<std::uint64_t>(*elements), size);
}

std::optional<ItemPlace> kept_item_place(const Outputs& outputs, const OutputTile& tile) {
  if (!tile.kept || outputs.source == nullptr) return std::nullopt;
  return tile.more && tile.more->place ? tile.more->place : outputs.source->item(*tile.kept);
}

void place_storage(const CarriedStorage& storage, std::uint32_t file, std::uint64_t offset,
                   LaidOut& laid_out) {
  if (storage.length == 0) return;
  if (storage.file.empty())
    laid_out.before.push_back({file, offset, storage.bytes});
  else
    laid_out.copies.push_back({file, offset, storage.file, storage.offset, storage.length, true});
}

}  // namespace shw
