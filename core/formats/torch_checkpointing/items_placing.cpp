#include "core/formats/torch_checkpointing/items_placing.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

bool is_item_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

std::string json_of_path(const std::vector<PathPart>& path) {
  nlohmann::json keys = nlohmann::json::array();
  for (const PathPart& part : path) {
    if (const auto* text = std::get_if<std::string>(&part))
      keys.push_back(*text);
    else
      keys.push_back(std::get<std::int64_t>(part));
  }
  return keys.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string key_of_path(const std::vector<PathPart>& path) {
  std::string key;
  for (const PathPart& part : path) {
    if (!key.empty()) key += '.';
    const auto* text = std::get_if<std::string>(&part);
    key += text != nullptr ? *text : std::to_string(std::get<std::int64_t>(part));
  }
  return key;
}

// Names from the opener are ITEM.PATH, as in the source.
Result<PlacedItemTensor> item_of(const OutputTensor& tensor) {
  std::vector<PathPart> path = tensor.path;
  const auto* first = path.size() > 1 ? std::get_if<std::string>(&path.front()) : nullptr;
  std::string item;
  if (first != nullptr) {
    item = *first;
    path.erase(path.begin());
  } else if (const std::size_t dot = tensor.fqn.find('.'); dot != std::string::npos) {
    item = tensor.fqn.substr(0, dot);
    path = {tensor.fqn.substr(dot + 1)};
  }
  std::string key = key_of_path(path);
  if (!is_item_name(item) || key.empty())
    return fail(ErrorKind::kUnsupported,
                "has no item prefix: torch_checkpointing names tensors ITEM.NAME, where ITEM has "
                "letters, digits, _ and -",
                Place{.file = {}, .tensor = tensor.fqn}, "--rename gives it one");
  return PlacedItemTensor{std::move(item), json_of_path(path), std::move(key)};
}

std::uint64_t item_bytes(const OutputTensor& tensor) {
  std::uint64_t bytes = 0;
  for (const OutputTile& tile : tensor.tiles) bytes += bytes_of(tensor, tile).value_or(0);
  return bytes;
}

// Writes opcodes of protocol 4 without a memo; the library writes one, but its loader does not need
// it.
class ItemsPickle {
 public:
  void raw(std::string_view opcodes) { out_ += opcodes; }
  void little(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i) & 0xff);
  }
  void text(std::string_view value) {
    out_ += 'X';
    little(value.size(), 4);
    out_ += value;
  }
  void integer(std::int64_t value) {
    if (value >= 0 && value < 256) {
      out_ += 'K';
      little(static_cast<std::uint64_t>(value), 1);
    } else {
      raw("\x8a\x08");
      little(static_cast<std::uint64_t>(value), 8);
    }
  }
  void integers(ExtentsView values, std::string_view begin, std::string_view end) {
    raw(begin);
    for (std::int64_t value : values) integer(value);
    raw(end);
  }
  std::string finish() {
    out_ += '.';
    ItemsPickle framed;
    framed.raw(std::string_view("\x80\x04\x95", 3));
    framed.little(out_.size(), 8);
    framed.raw(out_);
    return std::move(framed.out_);
  }

 private:
  std::string out_;
};

void put_group(const OutputTensor& tensor, std::uint32_t rank, ItemsPickle& out) {
  const Extents ranks{std::int64_t{rank}};
  out.raw("](}(");
  out.text("sharding_metadata");
  out.raw("}(");
  out.text("type");
  out.text("DTensorShardingMetadata");
  out.text("data");
  out.raw("}(");
  out.text("global_shape");
  out.integers(tensor.shape, "](", "e");
  out.text("dtype");
  out.text(fmt::format("torch.{}", name(tensor.dtype)));
  out.text("stride");
  out.integers(row_major_strides(tensor.shape), "](", "e");
  out.text("mesh_spec");
  out.raw("}(");
  out.text("device_type");
  out.text("cpu");
  out.text("mesh_shape");
  out.integers(Extents{1}, "(", "t");
  out.text("mesh_data");
  out.integers(ranks, "(", "t");
  out.text("mesh_dim_names");
  out.raw("Nu");
  out.text("placements");
  out.raw("](}(");
  out.text("type");
  out.text("Replicate");
  out.raw("ueuu");
  out.text("ranks");
  out.integers(ranks, "(", "t");
  out.raw("ue");
}

void pickle_item_metadata(const Outputs& outputs, const PlacedItems& placed,
                          const std::string& item, ItemsPickle& out) {
  out.raw("}(");
  out.text("nested_path_to_metadata");
  out.raw("}(");
  for (std::size_t t = 0; t < outputs.tensors.size(); ++t) {
    if (placed.tensors[t].item != item) continue;
    out.text(placed.tensors[t].path);
    put_group(outputs.tensors[t], placed.tensors[t].rank, out);
  }
  out.raw("u");
  out.text("rank_to_layout_info");
  out.raw("}(");
  for (std::uint32_t rank = 0; rank < placed.ranks; ++rank) {
    out.integer(rank);
    out.raw("}(");
    out.text("file_path");
    out.text(item_file(item, rank));
    out.text("serialization_format");
    out.raw("}(");
    out.text("type");
    out.text("SafetensorsSerialization");
    out.raw("uu");
  }
  out.raw("uu");
}

}  // namespace

Result<PlacedItems> place_items(const Outputs& outputs) {
  PlacedItems placed;
  std::set<std::string> items;
  std::set<std::pair<std::string, std::string>> keys;
  const std::uint64_t most = outputs.shard_bytes == 0 ? UINT64_MAX : outputs.shard_bytes;
  std::uint64_t filled = 0;
  std::uint32_t rank = 0;
  for (const OutputTensor& tensor : outputs.tensors) {
    SHW_TRY(PlacedItemTensor one, item_of(tensor));
    if (!keys.emplace(one.item, one.key).second)
      return fail(ErrorKind::kUnsupported,
                  fmt::format("two tensors of the item {} would get the key {}: "
                              "torch_checkpointing would overwrite one",
                              one.item, one.key),
                  Place{.file = {}, .tensor = tensor.fqn}, "rename one of them with --rename");
    const std::uint64_t bytes = item_bytes(tensor);
    if (filled != 0 && bytes > most - std::min(filled, most)) {
      ++rank;
      filled = 0;
    }
    filled += bytes;
    one.rank = rank;
    items.insert(one.item);
    placed.tensors.push_back(std::move(one));
  }
  placed.items.assign(items.begin(), items.end());
  placed.ranks = rank + 1;
  return placed;
}

std::string item_file(const std::string& item, std::uint32_t rank) {
  return fmt::format("{}_{}.safetensors", item, rank);
}

std::string items_pickle(const Outputs& outputs, const PlacedItems& placed) {
  ItemsPickle out;
  out.raw("}(");
  out.text("metadata");
  out.raw("}(");
  for (const std::string& item : placed.items) {
    out.text(item);
    pickle_item_metadata(outputs, placed, item, out);
  }
  out.raw("u");
  out.text("world_size");
  out.integer(placed.ranks);
  out.text("version");
  out.text("2.0");
  out.raw("u");
  return out.finish();
}

}  // namespace shw
