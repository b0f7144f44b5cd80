// Archives and tensor pickles built by hand, so that each part can be wrong on its own.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formats/zip/crc32.h"
#include "core/io/source.h"
#include "core/tensor/shape.h"

namespace shw::test {

inline std::string little(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i)
    text += static_cast<char>(i < 8 ? value >> (8 * i) & 0xFF : 0);
  return text;
}

inline Bytes to_bytes(std::string_view text) {
  auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

// Deflate blocks that store their bytes, at most 65,535 each.
inline std::string deflated(std::string_view text) {
  std::string out;
  do {
    const std::string_view block = text.substr(0, 0xFFFF);
    text.remove_prefix(block.size());
    out += little(text.empty() ? 1 : 0, 1) + little(block.size(), 2) +
           little(~block.size() & 0xFFFF, 2);
    out.append(block);
  } while (!text.empty());
  return out;
}

struct ZipRecord {
  std::string name;
  std::string bytes;
  bool deflate = false;
  std::uint64_t announced = ~std::uint64_t{0};  // a wrong length, if given
  bool crc = true;
  // With `deflate`: its compressed bytes; else they are stored uncompressed.
  std::string packed = {};
};

// A plain zip without zip64, as Python's zipfile writes one.
inline std::string make_zip(const std::vector<ZipRecord>& records, std::string_view comment = "") {
  std::string out, directory;
  for (const ZipRecord& record : records) {
    std::string stored = !record.deflate         ? record.bytes
                         : record.packed.empty() ? deflated(record.bytes)
                                                 : record.packed;
    std::uint64_t length =
        record.announced != ~std::uint64_t{0} ? record.announced : record.bytes.size();
    std::uint32_t crc = record.crc ? crc32_of(to_bytes(record.bytes)) : 0;
    std::string fields = little(0, 2) + little(record.deflate ? 8 : 0, 2) + little(0, 4) +
                         little(crc, 4) + little(stored.size(), 4) + little(length, 4) +
                         little(record.name.size(), 2) + little(0, 2);
    directory += "PK\1\2" + little(0, 4) + fields + little(0, 10) + little(out.size(), 4);
    directory += record.name;
    out += "PK\3\4" + little(0, 2) + fields + record.name + stored;
  }
  std::uint64_t begin = out.size();
  out += directory + "PK\5\6" + little(0, 4) + little(records.size(), 2) +
         little(records.size(), 2) + little(directory.size(), 4) + little(begin, 4) +
         little(comment.size(), 2);
  return out.append(comment);
}

inline std::string pickled_int(std::int64_t value) {
  return "\x8a\x08" + little(static_cast<std::uint64_t>(value), 8);
}
inline std::string pickled_text(std::string_view text) {
  return "X" + little(text.size(), 4).append(text);
}

// "{key: value, ...}" of pickled values.
inline std::string pickled_dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string out = "}(";
  for (const auto& [key, value] : items) out += pickled_text(key) + value;
  return out + "u";
}
inline std::string pickled_tuple(const Extents& values) {
  std::string out = "(";
  for (std::int64_t value : values) out += pickled_int(value);
  return out + "t";
}

struct TensorText {
  std::string storage_class = "torch\nFloatStorage\n";
  std::int64_t count = 6;
  std::int64_t offset = 0;
  Extents sizes{2, 3};
  Extents strides{3, 1};
  std::string function = "torch._utils\n_rebuild_tensor_v2\n";
  std::string more = {};  // after the hooks: a dtype, flags
  std::string key = "0";
};

// Only the rebuild call; a pickle is "\x80\x02" + call + ".".
inline std::string tensor_call(const TensorText& tensor) {
  return "c" + tensor.function + "((" + pickled_text("storage") + "c" + tensor.storage_class +
         pickled_text(tensor.key) + pickled_text("cpu") + pickled_int(tensor.count) + "tQ" +
         pickled_int(tensor.offset) + pickled_tuple(tensor.sizes) + pickled_tuple(tensor.strides) +
         "\x89" + "ccollections\nOrderedDict\n)R" + tensor.more + "tR";
}

inline std::string as_pickle(const std::string& call) {
  return "\x80\x02" + call + ".";
}

inline std::string flags(std::string_view name) {
  return "}" + pickled_text(name) + "\x88s";
}

}  // namespace shw::test
