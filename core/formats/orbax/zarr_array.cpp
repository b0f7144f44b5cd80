#include "core/formats/orbax/zarr_array.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/formats/common/numpy_dtype.h"

namespace shw {
namespace {

using Json = nlohmann::json;

tl::unexpected<Error> unsupported_zarr_error(std::string what) {
  return fail(ErrorKind::kUnsupported, std::move(what));
}
tl::unexpected<Error> damaged_zarr_error(std::string what) {
  return fail(ErrorKind::kDamaged, std::move(what));
}

const Json& member(const Json& object, const char* name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}
std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

Result<Extents> extents_of(const Json& value, std::string_view what, std::int64_t least) {
  Extents extents;
  if (!value.is_array()) return damaged_zarr_error(fmt::format("has no {}", what));
  for (const Json& one : value) {
    if (!one.is_number_integer() ||
        (one.is_number_unsigned() && !narrow<std::int64_t>(one.get<std::uint64_t>())))
      return damaged_zarr_error(fmt::format("has a {} that is not whole numbers", what));
    extents.push_back(one.get<std::int64_t>());
    if (extents.back() < least)
      return damaged_zarr_error(fmt::format("has {} in its {}", extents.back(), what));
  }
  return extents;
}

Status parse_grid(const Json& shape, const Json& chunk, ZarrArray& array) {
  SHW_TRY(array.shape, extents_of(shape, "shape", 0));
  SHW_TRY(array.chunk, extents_of(chunk, "shape of chunks", 1));
  if (array.shape.size() != array.chunk.size())
    return damaged_zarr_error(fmt::format("has chunks of {} dimensions for an array of {}",
                                          array.chunk.size(), array.shape.size()));
  if (!volume(array.shape) || !volume(array.chunk))
    return damaged_zarr_error("is impossibly large");
  return {};
}

// Parses numpy's code ("<f4", "|b1"), or a name where numpy has no code ("bfloat16").
Status parse_zarr_two_dtype(const Json& value, ZarrArray& array) {
  const std::string text = text_of(value);
  const NumpyDtype numpy = numpy_dtype(text);
  array.dtype = numpy.dtype;
  array.pipe.is_big_endian = numpy.is_big_endian;
  if (array.dtype == Dtype::kUnknown && text.find_first_of("<>|=") != 0)
    array.dtype = dtype_from_torch(text).value_or(Dtype::kUnknown);
  if (array.dtype == Dtype::kUnknown)
    return unsupported_zarr_error(
        fmt::format("has elements of the unsupported type {}", text.empty() ? "of its own" : text));
  return {};
}

Status parse_compressor(const std::string& id, ZarrArray& array) {
  constexpr std::pair<std::string_view, ZarrCompression> kKinds[] = {
      {"zstd", ZarrCompression::kZstd},
      {"gzip", ZarrCompression::kGzip},
      {"zlib", ZarrCompression::kZlib}};
  for (const auto& [name, kind] : kKinds) {
    if (name != id) continue;
    if (array.pipe.compression != ZarrCompression::kNone)
      return unsupported_zarr_error("is compressed twice, which is not supported");
    array.pipe.compression = kind;
    return {};
  }
  return unsupported_zarr_error(fmt::format("is compressed with {}, which is not supported", id));
}

bool is_zero(const Json& fill) {
  if (fill.is_null()) return true;
  if (fill.is_boolean()) return !fill.get<bool>();
  if (fill.is_number()) return fill.get<double>() == 0;
  if (fill.is_array())
    return std::all_of(fill.begin(), fill.end(), [](const Json& one) { return is_zero(one); });
  return false;
}

Result<std::optional<ZarrArray>> parse_zarr_two(const Json& json) {
  ZarrArray array;
  if (member(json, "zarr_format") != 2) return damaged_zarr_error("is not of zarr format 2");
  SHW_CHECK(parse_grid(member(json, "shape"), member(json, "chunks"), array));
  SHW_CHECK(parse_zarr_two_dtype(member(json, "dtype"), array));
  if (const Json& filters = member(json, "filters"); filters.is_array() && !filters.empty())
    return unsupported_zarr_error("has filters, which are not supported");
  if (const Json& compressor = member(json, "compressor"); !compressor.is_null())
    SHW_CHECK(parse_compressor(text_of(member(compressor, "id")), array));
  array.is_column_major = text_of(member(json, "order")) == "F";
  if (text_of(member(json, "dimension_separator")) == "/") array.separator = '/';
  array.fill_is_zero = is_zero(member(json, "fill_value"));
  return std::optional(std::move(array));
}

// Parses the codecs from elements to bytes and from bytes to bytes.
Status parse_codecs(const Json& codecs, ZarrArray& array, bool is_inside);

Status parse_shards(const Json& configuration, ZarrArray& array) {
  SHW_TRY(array.inner,
          extents_of(member(configuration, "chunk_shape"), "shape of inner chunks", 1));
  array.is_sharded = true;
  if (array.inner.size() != array.chunk.size())
    return damaged_zarr_error("has inner chunks with the wrong number of dimensions");
  for (std::size_t d = 0; d < array.inner.size(); ++d) {
    if (array.chunk[d] % array.inner[d] != 0)
      return damaged_zarr_error("has inner chunks that do not divide its chunks");
  }
  array.index_at_end = text_of(member(configuration, "index_location")) != "start";
  const Json& index = member(configuration, "index_codecs");
  if (!index.is_array()) return damaged_zarr_error("has no codecs for the index of its shards");
  for (const Json& codec : index) {
    const std::string name = text_of(member(codec, "name"));
    if (name == "crc32c")
      array.index_has_checksum = true;
    else if (name != "bytes" || text_of(member(member(codec, "configuration"), "endian")) == "big")
      return unsupported_zarr_error("has a shard index in an unsupported format");
  }
  return parse_codecs(member(configuration, "codecs"), array, true);
}

Status parse_codecs(const Json& codecs, ZarrArray& array, bool is_inside) {
  if (!codecs.is_array() || codecs.empty()) return damaged_zarr_error("has no codecs");
  bool are_bytes = false;
  for (const Json& codec : codecs) {
    const std::string name = codec.is_string() ? text_of(codec) : text_of(member(codec, "name"));
    const Json& configuration = member(codec, "configuration");
    if (name == "sharding_indexed" && !is_inside && codecs.size() == 1)
      return parse_shards(configuration, array);
    if (name == "bytes" && !are_bytes) {
      are_bytes = true;
      array.pipe.is_big_endian =
          text_of(member(configuration, "endian")) == "big" && size_of(array.dtype) > 1;
    } else if (name == "crc32c" && are_bytes && !array.pipe.has_checksum) {
      array.pipe.has_checksum = true;
    } else if (are_bytes && !array.pipe.has_checksum && name != "bytes") {
      SHW_CHECK(parse_compressor(name, array));
    } else {
      return unsupported_zarr_error(fmt::format("has the unsupported codec {}", name));
    }
  }
  return are_bytes ? Status{}
                   : unsupported_zarr_error("has no codec that converts elements to bytes");
}

Result<std::optional<ZarrArray>> parse_zarr_three(const Json& json) {
  if (text_of(member(json, "node_type")) == "group") return std::optional<ZarrArray>();
  ZarrArray array;
  if (member(json, "zarr_format") != 3) return damaged_zarr_error("is not of zarr format 3");
  const Json& grid = member(json, "chunk_grid");
  if (text_of(member(grid, "name")) != "regular")
    return unsupported_zarr_error("has an irregular chunk grid");
  SHW_CHECK(parse_grid(member(json, "shape"), member(member(grid, "configuration"), "chunk_shape"),
                       array));
  const std::string type = text_of(member(json, "data_type"));
  array.dtype = dtype_from_torch(type).value_or(Dtype::kUnknown);
  if (array.dtype == Dtype::kUnknown)
    return unsupported_zarr_error(
        fmt::format("has elements of the unsupported type {}", type.empty() ? "of its own" : type));
  if (const Json& more = member(json, "storage_transformers"); more.is_array() && !more.empty())
    return unsupported_zarr_error("has storage transformers, which are not supported");
  const Json& keys = member(json, "chunk_key_encoding");
  const bool is_default = text_of(member(keys, "name")) != "v2";
  array.begins_with_c = is_default;
  const std::string separator = text_of(member(member(keys, "configuration"), "separator"));
  array.separator = separator.empty() ? (is_default ? '/' : '.') : separator.front();
  array.fill_is_zero = is_zero(member(json, "fill_value"));
  SHW_CHECK(parse_codecs(member(json, "codecs"), array, false));
  return std::optional(std::move(array));
}

std::optional<std::int64_t> index_of_key(std::string_view text) {
  if (text.empty() || text.size() > 18 || (text.size() > 1 && text.front() == '0'))
    return std::nullopt;
  std::int64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

Result<std::optional<ZarrArray>> parse_zarr_array(BytesView json, bool is_version_three) {
  const std::string_view text(reinterpret_cast<const char*>(json.data()), json.size());
  const auto parsed = parse_json<Json>(text);
  if (!parsed.problem.empty()) return damaged_zarr_error("is " + json_error_text(parsed));
  return is_version_three ? parse_zarr_three(parsed.tree) : parse_zarr_two(parsed.tree);
}

std::optional<Extents> zarr_chunk_index(const ZarrArray& array, std::string_view key) {
  const std::size_t ndim = array.shape.size();
  if (array.begins_with_c) {
    if (!key.starts_with('c')) return std::nullopt;
    key.remove_prefix(1);
    if (ndim == 0) return key.empty() ? std::optional(Extents()) : std::nullopt;
    if (!key.starts_with(array.separator)) return std::nullopt;
    key.remove_prefix(1);
  } else if (ndim == 0) {
    return key == "0" ? std::optional(Extents()) : std::nullopt;
  }
  Extents index;
  for (std::size_t d = 0; d < ndim; ++d) {
    const std::size_t end = d + 1 < ndim ? key.find(array.separator) : key.size();
    if (end == std::string_view::npos) return std::nullopt;
    const auto one = index_of_key(key.substr(0, end));
    if (!one || *one > (array.shape[d] - 1) / array.chunk[d] || array.shape[d] == 0)
      return std::nullopt;
    index.push_back(*one);
    key.remove_prefix(std::min(key.size(), end + 1));
  }
  return index;
}

}  // namespace shw
