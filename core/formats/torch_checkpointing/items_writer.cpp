#include "core/formats/torch_checkpointing/items_writer.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/formats/common/safetensors_dtypes.h"
#include "core/formats/safetensors_outputs.h"
#include "core/formats/torch_checkpointing/items_metadata.h"
#include "core/formats/torch_checkpointing/items_placing.h"

namespace shw {
namespace {

constexpr std::uint64_t kHeaderAlignment = 8;

// The header of a safetensors file: length and padded JSON.
Bytes header_bytes(const nlohmann::ordered_json& header) {
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  while (text.size() % kHeaderAlignment != 0) text += ' ';
  const auto length = static_cast<std::uint64_t>(text.size());
  Bytes bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(length >> (8 * i) & 0xff));
  const auto rest = std::as_bytes(std::span(text));
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

// Adds the file of one item and rank with these tensors.
Status add_item_file(const Outputs& outputs, const PlacedItems& placed, const std::string& item,
                     std::uint32_t rank, const std::vector<std::uint32_t>& tensors, LaidOut& out) {
  const auto file = static_cast<std::uint32_t>(out.files.size());
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::uint64_t at = 0;
  const std::size_t first = out.made.size();
  for (std::uint32_t t : tensors) {
    const OutputTensor& tensor = outputs.tensors[t];
    const std::uint64_t begin = at;
    for (std::uint32_t tile = 0; tile < tensor.tiles.size(); ++tile) {
      const auto bytes = bytes_of(tensor, tensor.tiles[tile]);
      if (!bytes)
        return fail(ErrorKind::kUnsupported, "has a box that cannot be written",
                    Place{.file = {}, .tensor = tensor.fqn});
      out.made.push_back({t, tile, file, at, *bytes, at, *bytes});
      at += *bytes;
    }
    header[placed.tensors[t].key] = {{"dtype", safetensors_dtype_name(tensor.dtype)},
                                     {"shape", tensor.shape},
                                     {"data_offsets", {begin, at}}};
  }
  Bytes head = header_bytes(header);
  for (std::size_t i = first; i < out.made.size(); ++i) {
    out.made[i].offset += head.size();
    out.made[i].item_offset += head.size();
  }
  out.files.push_back({item_file(item, rank), head.size() + at});
  out.before.push_back({file, 0, std::move(head)});
  return {};
}

Result<LaidOut> lay_out_items(const Outputs& outputs) {
  SHW_CHECK(check_safetensors_can_store(outputs, false, "torch_checkpointing"));
  SHW_TRY(PlacedItems placed, place_items(outputs));
  std::map<std::pair<std::string, std::uint32_t>, std::vector<std::uint32_t>> by_file;
  for (std::uint32_t t = 0; t < outputs.tensors.size(); ++t)
    by_file[{placed.tensors[t].item, placed.tensors[t].rank}].push_back(t);
  LaidOut out;
  for (std::uint32_t rank = 0; rank < placed.ranks; ++rank) {
    for (const std::string& item : placed.items)
      SHW_CHECK(add_item_file(outputs, placed, item, rank, by_file[{item, rank}], out));
  }
  std::sort(out.made.begin(), out.made.end(), [](const WrittenTile& a, const WrittenTile& b) {
    return std::pair(a.tensor, a.tile) < std::pair(b.tensor, b.tile);
  });
  return out;
}

// Writes metadata.pkl last: without it the folder is not a checkpoint.
Status seal_items(Outputs outputs, const LaidOut&, const CreateFile& create) {
  SHW_TRY(PlacedItems placed, place_items(outputs));
  const std::string text = items_pickle(outputs, placed);
  SHW_TRY(auto sink, create(kItemsMetadata));
  SHW_CHECK(sink->write(std::as_bytes(std::span(text.data(), text.size()))));
  return sink->finish();
}

}  // namespace

constexpr FormatWriter kItemsWriter{lay_out_items, nullptr, seal_items};

}  // namespace shw
