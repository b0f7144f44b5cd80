// The header of a sharded file with other offsets in it, before the same data.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/formats/safetensors.h"
#include "core/formats/safetensors_header.h"

namespace shw {
namespace {

using OrderedJson = nlohmann::ordered_json;

Result<std::string> header_with(const ByteSource& source, const SafetensorsHeader& header,
                                const std::map<std::string, Extents>& new_offsets) {
  SHW_TRY(Bytes bytes, read_bytes(source, 8, header.data_begin - 8));
  const char* text = reinterpret_cast<const char*>(bytes.data());
  // Nesting was bounded when the header was read; so was the sharding information's.
  OrderedJson json = OrderedJson::parse(text, text + bytes.size(), nullptr, false);
  const std::string* info_text = header.find_metadata(kShardingInfoKey);
  if (json.is_discarded() || info_text == nullptr)
    return fail(ErrorKind::kUnsupported, "has no " + std::string(kShardingInfoKey),
                {source.name(), 8});
  SHW_CHECK(parse_sharding_info(*info_text, source.name()));
  OrderedJson info = OrderedJson::parse(*info_text, nullptr, false);
  for (const auto& [fqn, offsets] : new_offsets) {
    auto entry = info.find(fqn);
    if (entry == info.end() || !entry->is_object())
      return fail(ErrorKind::kUsage, "holds no shard of this tensor", {source.name(), 8, fqn});
    (*entry)["saved_offsets"] = offsets;
  }
  json["__metadata__"][std::string(kShardingInfoKey)] = info.dump();
  return json.dump();
}

Status copy_range(const ByteSource& source, std::uint64_t offset, ByteSink& out) {
  constexpr std::uint64_t kCopy = 1 << 20;
  Bytes buffer;
  for (const Extent& extent : source.extents(offset, source.size() - offset)) {
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

}  // namespace

Status copy_with_sharding_info(const ByteSource& source,
                               const std::map<std::string, Extents>& new_offsets, ByteSink& out) {
  SHW_TRY(SafetensorsHeader header, read_safetensors_header(source));
  SHW_TRY(std::string text, header_with(source, header, new_offsets));
  std::uint64_t length = header.data_begin - 8;
  // A longer text moves the data; it then begins at a multiple of 8 again.
  if (text.size() > length) length = (text.size() + 7) / 8 * 8;
  text.resize(length, ' ');
  SHW_CHECK(out.write(std::as_bytes(std::span(&length, 1))));
  SHW_CHECK(out.write(std::as_bytes(std::span(text))));
  return copy_range(source, header.data_begin, out);
}

}  // namespace shw
