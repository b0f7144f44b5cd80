// The header of a sharded file with other offsets in it, before the same data; and whole files with
// other tensors in them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/base/checked.h"
#include "core/formats/common/filled_attribute.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/formats/safetensors/safetensors_header.h"

namespace shw {
namespace {

using OrderedJson = nlohmann::ordered_json;

Result<OrderedJson> read_json(const ByteSource& source, const SafetensorsHeader& header) {
  SHW_TRY(Bytes bytes, read_bytes(source, 8, header.data_begin - 8));
  const char* text = reinterpret_cast<const char*>(bytes.data());
  // Nesting was bounded when the header was read; so is the sharding information's, below.
  OrderedJson json = OrderedJson::parse(text, text + bytes.size(), nullptr, false);
  if (json.is_discarded())
    return fail(ErrorKind::kDamaged, "the header is no JSON", {source.name(), 8});
  return json;
}

// Shards that are dropped leave the sharding information, those that are `added` may join it.
Status change_sharding_info(const ByteSource& source, const SafetensorsHeader& header,
                            const std::map<std::string, Extents>& new_offsets,
                            const std::set<std::string>& dropped,
                            const std::map<std::string, SafetensorsTensor>& added,
                            OrderedJson& json) {
  const std::string* info_text = header.find_metadata(kShardingInfoKey);
  if (info_text == nullptr) {
    if (new_offsets.empty()) return {};
    return fail(ErrorKind::kUnsupported, "has no " + std::string(kShardingInfoKey),
                {source.name(), 8});
  }
  SHW_CHECK(parse_sharding_info(*info_text, source.name()));
  OrderedJson info = OrderedJson::parse(*info_text, nullptr, false);
  for (const std::string& fqn : dropped) info.erase(fqn);
  for (const auto& [fqn, offsets] : new_offsets) {
    auto entry = info.find(fqn);
    bool there = entry != info.end() && entry->is_object();
    if (!there && !added.contains(fqn))
      return fail(ErrorKind::kUsage, "holds no shard of this tensor", {source.name(), 8, fqn});
    if (!there) info[fqn] = OrderedJson::object();
    info[fqn]["saved_offsets"] = offsets;
  }
  json["__metadata__"][std::string(kShardingInfoKey)] = info.dump();
  return {};
}

Result<std::string> header_with(const ByteSource& source, const SafetensorsHeader& header,
                                const std::map<std::string, Extents>& new_offsets) {
  SHW_TRY(OrderedJson json, read_json(source, header));
  SHW_CHECK(change_sharding_info(source, header, new_offsets, {}, {}, json));
  return json.dump();
}

Status copy_range(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                  ByteSink& out) {
  constexpr std::uint64_t kCopy = 1 << 20;
  Bytes buffer;
  for (const Extent& extent : source.extents(offset, length)) {
    if (extent.hole) {
      SHW_CHECK(out.skip(extent.length));
      continue;
    }
    for (std::uint64_t done = 0; done < extent.length; done += buffer.size()) {
      buffer.resize(std::min(kCopy, extent.length - done));
      SHW_CHECK(source.read(extent.offset + done, buffer));
      SHW_CHECK(out.write(buffer));
    }
  }
  return {};
}

Status write_header(std::string text, std::uint64_t length, ByteSink& out) {
  text.resize(length, ' ');
  SHW_CHECK(out.write(std::as_bytes(std::span(&length, 1))));
  return out.write(std::as_bytes(std::span(text)));
}

// One tensor of the new file: bytes that are copied, or that are written.
struct HeaderPart {
  std::string name;
  const SafetensorsEntry* old = nullptr;
  const SafetensorsTensor* made = nullptr;
  std::uint64_t length = 0;
  std::uint64_t place = 0;  // what it is sorted by among its like
  std::size_t alignment = 1;
};

std::size_t alignment_of(std::string_view dtype_text) {
  auto dtype = dtype_from_safetensors(dtype_text);
  return dtype ? size_of(*dtype) : 1;
}

std::vector<HeaderPart> parts_of(const SafetensorsHeader& header, const SafetensorsChange& change) {
  std::vector<HeaderPart> parts;
  std::set<std::string_view> held;
  for (const SafetensorsEntry& entry : header.entries) {
    held.insert(entry.name);
    if (change.dropped.contains(entry.name)) continue;
    auto made = change.written.find(entry.name);
    const SafetensorsTensor* tensor = made == change.written.end() ? nullptr : &made->second;
    parts.push_back({entry.name, &entry, tensor,
                     tensor != nullptr ? tensor->length : entry.end - entry.begin, entry.begin,
                     alignment_of(entry.dtype_text)});
  }
  for (const auto& [name, tensor] : change.written) {
    if (held.contains(name)) continue;
    parts.push_back(
        {name, nullptr, &tensor, tensor.length, UINT64_MAX, alignment_of(tensor.dtype_text)});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const HeaderPart& a, const HeaderPart& b) {
    return a.alignment != b.alignment ? a.alignment > b.alignment : a.place < b.place;
  });
  return parts;
}

// F4 counts single elements; here two of them are one.
Extents shape_in_header(const std::string& dtype_text, Extents shape) {
  if (dtype_text == "F4" && !shape.empty()) shape.back() *= 2;
  return shape;
}

// The header of the parts, in their order: an object that is built in order, because looking keys
// up in one is linear.
Result<OrderedJson> header_of(const ByteSource& source, const std::vector<HeaderPart>& parts,
                              OrderedJson old) {
  std::unordered_map<std::string_view, OrderedJson*> entries;
  for (auto& [name, entry] : old.get_ref<OrderedJson::object_t&>()) entries.emplace(name, &entry);
  OrderedJson json = OrderedJson::object();
  auto& made = json.get_ref<OrderedJson::object_t&>();
  if (auto found = entries.find("__metadata__"); found != entries.end())
    made.push_back({"__metadata__", std::move(*found->second)});
  std::uint64_t end = 0;
  for (const HeaderPart& part : parts) {
    auto next = checked_add(end, part.length);
    if (!next) return fail(ErrorKind::kUnsupported, "would be too large", {source.name()});
    std::string dtype_text = part.old != nullptr ? part.old->dtype_text : part.made->dtype_text;
    OrderedJson entry = OrderedJson::object();
    if (part.old != nullptr) entry = std::move(*entries.at(part.name));
    if (part.old == nullptr) entry["dtype"] = dtype_text;
    if (part.made != nullptr) entry["shape"] = shape_in_header(dtype_text, part.made->shape);
    entry["data_offsets"] = {end, *next};
    made.push_back({part.name, std::move(entry)});
    end = *next;
  }
  return json;
}

// A file before it is written: its header, and what follows.
struct FileLayout {
  std::string header;
  std::uint64_t header_length = 0;
  std::vector<HeaderPart> parts;  // refer to `old` and to the change
  SafetensorsHeader old;
};

Status lay_out_file(const ByteSource& source, const SafetensorsChange& change, FileLayout& layout) {
  SHW_TRY(layout.old, read_safetensors_header(source));
  const SafetensorsHeader& header = layout.old;
  if (!header.problems.empty()) {
    const SafetensorsProblem& problem = header.problems.front();
    return fail(ErrorKind::kUnsupported,
                "is damaged and cannot be written anew: " + problem.message,
                {source.name(), problem.at, problem.tensor});
  }
  SHW_TRY(OrderedJson json, read_json(source, header));
  SHW_CHECK(change_sharding_info(source, header, change.saved_offsets, change.dropped,
                                 change.written, json));
  if (!change.filled.empty()) {
    if (!json.contains("__metadata__") || !json["__metadata__"].is_object())
      json["__metadata__"] = OrderedJson::object();
    json["__metadata__"][std::string(kFilledAttribute)] = change.filled;
  }
  layout.parts = parts_of(header, change);
  SHW_TRY(json, header_of(source, layout.parts, std::move(json)));
  layout.header = json.dump();
  layout.header_length = (layout.header.size() + 7) / 8 * 8;
  if (layout.header_length > kMaxSafetensorsHeader)
    return fail(ErrorKind::kUnsupported, "would need a header that no reader takes",
                {source.name()});
  return {};
}

}  // namespace

Result<std::map<std::string, std::uint64_t>> payload_offsets(const ByteSource& source,
                                                             const SafetensorsChange& change) {
  FileLayout layout;
  SHW_CHECK(lay_out_file(source, change, layout));
  std::map<std::string, std::uint64_t> offsets;
  std::uint64_t at = 8 + layout.header_length;
  for (const HeaderPart& part : layout.parts) {
    if (part.made != nullptr) offsets[part.name] = at;
    at += part.length;
  }
  return offsets;
}

Status rewrite_safetensors(const ByteSource& source, const SafetensorsChange& change,
                           ByteSink& out) {
  FileLayout layout;
  SHW_CHECK(lay_out_file(source, change, layout));
  SHW_CHECK(write_header(std::move(layout.header), layout.header_length, out));
  for (const HeaderPart& part : layout.parts) {
    std::uint64_t begin = out.position();
    SHW_CHECK(part.made != nullptr ? part.made->write(out)
                                   : copy_range(source, part.old->begin, part.length, out));
    if (out.position() - begin != part.length)
      return fail(ErrorKind::kIo, "another number of bytes was written than announced",
                  {source.name(), begin, part.name});
  }
  return {};
}

Result<std::string> index_with(const ByteSource& source, std::int64_t more_bytes,
                               std::int64_t more_elements,
                               const std::map<std::string, std::string>& homes) {
  constexpr std::uint64_t kMaxIndex = 256 << 20;
  auto damaged = [&](const std::string& why) {
    return fail(ErrorKind::kDamaged, "the index " + why, {source.name()});
  };
  if (source.size() > kMaxIndex) return damaged("is too large to be one");
  SHW_TRY(Bytes bytes, read_bytes(source, 0, source.size()));
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto too_deep = [](int depth, OrderedJson::parse_event_t, OrderedJson&) { return depth < 16; };
  OrderedJson json = OrderedJson::parse(text, too_deep, false);
  if (json.is_discarded() || !json.is_object()) return damaged("is no JSON object");
  auto weight_map = json.find("weight_map");
  if (weight_map != json.end() && weight_map->is_object()) {
    for (auto& [fqn, file] : weight_map->items()) {
      if (auto home = homes.find(fqn); home != homes.end()) file = home->second;
    }
  }
  auto metadata = json.find("metadata");
  if (metadata == json.end() || !metadata->is_object())
    return homes.empty() ? text : json.dump(2) + "\n";
  auto move = [&](const char* key, std::int64_t by) {
    auto number = metadata->find(key);
    if (number == metadata->end() || !number->is_number_integer()) return;
    auto moved = checked_add(number->get<std::int64_t>(), by);
    if (moved && *moved >= 0) *number = *moved;
  };
  move("total_size", more_bytes);
  move("total_parameters", more_elements);
  return json.dump(2) + "\n";
}

Status copy_with_sharding_info(const ByteSource& source,
                               const std::map<std::string, Extents>& new_offsets, ByteSink& out) {
  SHW_TRY(SafetensorsHeader header, read_safetensors_header(source));
  SHW_TRY(std::string text, header_with(source, header, new_offsets));
  std::uint64_t length = header.data_begin - 8;
  // A longer text moves the data; it then begins at a multiple of 8 again.
  if (text.size() > length) length = (text.size() + 7) / 8 * 8;
  SHW_CHECK(write_header(std::move(text), length, out));
  return copy_range(source, header.data_begin, source.size() - header.data_begin, out);
}

}  // namespace shw
