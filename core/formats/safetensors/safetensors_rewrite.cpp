// Rewrites headers with other offsets for the same data, and whole files with other
// tensors.
#include "core/formats/safetensors/safetensors_rewrite.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/formats/common/filled_attribute.h"
#include "core/formats/common/safetensors_dtypes.h"
#include "core/formats/common/safetensors_header.h"
#include "core/formats/safetensors/safetensors_new.h"

namespace shw {
namespace {

using OrderedJson = nlohmann::ordered_json;

Result<OrderedJson> read_json(const ByteSource& source, const SafetensorsHeader& header) {
  SHW_TRY(Bytes bytes, read_bytes(source, 8, header.data_begin - 8));
  const char* text = reinterpret_cast<const char*>(bytes.data());
  // Nesting was limited when the header was read, also of the sharding information below.
  OrderedJson json = parse_json<OrderedJson>({text, bytes.size()}).tree;
  if (json.is_discarded())
    return fail(ErrorKind::kDamaged, "the header is not JSON", {source.name(), 8});
  return json;
}

// Removes dropped shards from the sharding information and inserts those `added`.
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
  OrderedJson old = parse_json<OrderedJson>(*info_text).tree;
  OrderedJson info = OrderedJson::object();
  auto& members = info.get_ref<OrderedJson::object_t&>();
  std::unordered_map<std::string_view, OrderedJson*> entries;
  for (auto& [fqn, entry] : old.get_ref<OrderedJson::object_t&>()) {
    if (dropped.contains(fqn)) continue;
    members.push_back({fqn, std::move(entry)});
  }
  members.reserve(members.size() + new_offsets.size());
  for (auto& [fqn, entry] : members) entries.emplace(fqn, &entry);
  for (const auto& [fqn, offsets] : new_offsets) {
    auto entry = entries.find(fqn);
    const bool is_named = entry != entries.end();
    const bool there = is_named && entry->second->is_object();
    if (!there && !added.contains(fqn))
      return fail(ErrorKind::kUsage, "holds no shard of this tensor", {source.name(), 8, fqn});
    if (!is_named) members.push_back({fqn, OrderedJson::object()});
    OrderedJson& shard = is_named ? *entry->second : members.back().second;
    if (!there) shard = OrderedJson::object();
    shard["saved_offsets"] = offsets;
  }
  json["__metadata__"][std::string(kShardingInfoKey)] = info.dump();
  return {};
}

Result<std::string> header_with_offsets(const ByteSource& source, const SafetensorsHeader& header,
                                        const std::map<std::string, Extents>& new_offsets) {
  SHW_TRY(OrderedJson json, read_json(source, header));
  SHW_CHECK(change_sharding_info(source, header, new_offsets, {}, {}, json));
  return json.dump();
}

// A header of `length` bytes: its length, the text, and spaces for alignment.
Bytes padded_header(const std::string& text, std::uint64_t length) {
  Bytes out(8 + static_cast<std::size_t>(length), static_cast<std::byte>(' '));
  std::memcpy(out.data(), &length, sizeof length);
  std::memcpy(out.data() + sizeof length, text.data(), text.size());
  return out;
}

// One tensor of the new file, copied or written.
struct HeaderPart {
  std::string name;
  const SafetensorsEntry* old = nullptr;
  const SafetensorsTensor* made = nullptr;
  std::uint64_t length = 0;
  std::uint64_t place = 0;  // sort key among equal ranks
  std::size_t rank = 0;     // higher ones first
};

std::size_t alignment_of(std::string_view dtype_text) {
  auto dtype = dtype_from_safetensors(dtype_text);
  return dtype ? size_of(*dtype) : 1;
}

// Tensors keep their order among equal element sizes; new files have the order of the reference
// implementation.
std::vector<HeaderPart> parts_of(const SafetensorsHeader& header, const SafetensorsChange& change) {
  bool is_new = header.entries.empty();
  std::vector<HeaderPart> parts;
  std::set<std::string_view> held;
  for (const SafetensorsEntry& entry : header.entries) {
    held.insert(entry.name);
    if (change.dropped.contains(entry.name)) continue;
    auto made = change.written.find(entry.name);
    const SafetensorsTensor* tensor = made == change.written.end() ? nullptr : &made->second;
    const bool is_retyped = tensor != nullptr && !tensor->dtype_text.empty();
    parts.push_back({entry.name, &entry, tensor,
                     tensor != nullptr ? tensor->length : entry.end - entry.begin, entry.begin,
                     alignment_of(is_retyped ? tensor->dtype_text : entry.dtype_text)});
  }
  for (const auto& [name, tensor] : change.written) {
    if (held.contains(name)) continue;
    std::size_t rank =
        is_new ? safetensors_dtype_rank(tensor.dtype_text) : alignment_of(tensor.dtype_text);
    parts.push_back({name, nullptr, &tensor, tensor.length, UINT64_MAX, rank});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const HeaderPart& a, const HeaderPart& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.place < b.place;
  });
  return parts;
}

// F4 counts single elements, of which torch packs two into one.
Extents shape_in_header(const std::string& dtype_text, Extents shape) {
  if (dtype_text == "F4" && !shape.empty()) shape.back() *= 2;
  return shape;
}

// Header with parts in the given order. Built sequentially, since lookups in ordered objects are
// linear.
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
    // A replaced tensor may have another dtype.
    const bool is_retyped = part.made != nullptr && !part.made->dtype_text.empty();
    const bool keeps_dtype = part.old != nullptr && !is_retyped;
    std::string dtype_text = keeps_dtype ? part.old->dtype_text : part.made->dtype_text;
    OrderedJson entry = OrderedJson::object();
    if (part.old != nullptr) entry = std::move(*entries.at(part.name));
    if (!keeps_dtype) entry["dtype"] = dtype_text;
    if (part.made != nullptr) entry["shape"] = shape_in_header(dtype_text, part.made->shape);
    entry["data_offsets"] = {end, *next};
    made.push_back({part.name, std::move(entry)});
    end = *next;
  }
  return json;
}

// Merges copies that are contiguous in both files.
void add_copy(SafetensorsLayout& layout, std::uint64_t begin, std::uint64_t length) {
  if (length == 0) return;
  auto* last = layout.copies.empty() ? nullptr : &layout.copies.back();
  if (last != nullptr && last->offset + last->length == layout.size &&
      last->begin + last->length == begin) {
    last->length += length;
  } else {
    layout.copies.push_back({layout.size, begin, length});
  }
  layout.size += length;
}

Result<SafetensorsLayout> lay_out_rewritten(const ByteSource& source,
                                            const SafetensorsChange& change) {
  SHW_TRY(SafetensorsHeader header, read_safetensors_header(source));
  for (const SafetensorsProblem& problem : header.problems) {
    if (problem.is_unowned) continue;  // such bytes are not copied
    return fail(ErrorKind::kUnsupported, "is damaged and cannot be rewritten: " + problem.message,
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
  std::vector<HeaderPart> parts = parts_of(header, change);
  SHW_TRY(json, header_of(source, parts, std::move(json)));
  std::string text = json.dump();
  std::uint64_t length = (text.size() + 7) / 8 * 8;
  if (length > kMaxSafetensorsHeader)
    return fail(ErrorKind::kUnsupported, "needs a header larger than readers accept",
                {source.name()});
  SafetensorsLayout layout;
  layout.header = padded_header(text, length);
  layout.size = layout.header.size();
  for (const HeaderPart& part : parts) {
    if (part.made == nullptr) {
      add_copy(layout, part.old->begin, part.length);
      continue;
    }
    layout.written[part.name] = layout.size;
    layout.size += part.length;
  }
  return layout;
}

Result<SafetensorsLayout> lay_out_relabelled(const ByteSource& source,
                                             const SafetensorsChange& change) {
  SHW_TRY(SafetensorsHeader header, read_safetensors_header(source));
  SHW_TRY(std::string text, header_with_offsets(source, header, change.saved_offsets));
  std::uint64_t length = header.data_begin - 8;
  // A longer header moves the data to the next multiple of 8.
  if (text.size() > length) length = (text.size() + 7) / 8 * 8;
  SafetensorsLayout layout;
  layout.header = padded_header(text, length);
  layout.size = layout.header.size();
  add_copy(layout, header.data_begin, source.size() - header.data_begin);
  return layout;
}

}  // namespace

Result<SafetensorsLayout> lay_out_safetensors(const ByteSource& source,
                                              const SafetensorsChange& change) {
  return change.moves_bytes() ? lay_out_rewritten(source, change)
                              : lay_out_relabelled(source, change);
}

bool widen_safetensors_header(Bytes& header, std::uint64_t by) {
  const std::uint64_t length = header.size() - 8 + by;
  if (length > kMaxSafetensorsHeader) return false;
  header.resize(8 + static_cast<std::size_t>(length), static_cast<std::byte>(' '));
  std::memcpy(header.data(), &length, sizeof length);
  return true;
}

}  // namespace shw
