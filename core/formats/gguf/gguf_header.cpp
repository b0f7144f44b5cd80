#include "core/formats/gguf/gguf_header.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "core/base/checked.h"
#include "core/formats/common/file_cursor.h"
#include "core/formats/common/lfs_pointer.h"

namespace shw {
namespace {

// Generous limits: llama.cpp allows names of 63 bytes and four dimensions, other programs more.
constexpr std::uint64_t kMostName = 4096;
constexpr std::uint32_t kMostDims = 8;
constexpr int kMaxNested = 4;
constexpr std::uint64_t kMaxKeptTextBytes = 4096;

enum ValueType : std::uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kText,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
  kValueTypes
};
// Bytes per value type; 0 for texts and arrays, which store their own length.
constexpr std::uint64_t kValueBytes[kValueTypes] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

// Returns the number of its elements.
std::uint64_t skip_array(FileCursor& cursor, const Progress* progress, int depth) {
  const auto type = cursor.take<std::uint32_t>();
  const auto count = cursor.take<std::uint64_t>();
  if (!cursor.ok()) return 0;
  if (type >= kValueTypes || depth > kMaxNested) {
    cursor.stop(ErrorKind::kDamaged, fmt::format("an array has the unknown type {}", type));
    return 0;
  }
  if (const std::uint64_t bytes = kValueBytes[type]; bytes != 0) {
    cursor.skip(checked_mul(bytes, count).value_or(~std::uint64_t{0}));
    return count;
  }
  // Texts and arrays take at least eight bytes each, so an invalid `count` stops at the file's end.
  // byte.
  for (std::uint64_t i = 0; i < count && cursor.ok() && !is_cancelled(progress); ++i) {
    if (type == kText)
      cursor.skip(cursor.take<std::uint64_t>());
    else
      skip_array(cursor, progress, depth + 1);
  }
  return count;
}

void consume_number_of(FileCursor& cursor, GgufHeader& header, const std::string& key,
                       std::uint32_t type) {
  switch (type) {
    case kUint8:
      header.numbers[key] = cursor.take<std::uint8_t>();
      break;
    case kUint16:
      header.numbers[key] = cursor.take<std::uint16_t>();
      break;
    case kUint32:
      header.numbers[key] = cursor.take<std::uint32_t>();
      break;
    case kInt32:
      header.numbers[key] = static_cast<std::uint64_t>(cursor.take<std::int32_t>());
      break;
    case kUint64:
      header.numbers[key] = cursor.take<std::uint64_t>();
      break;
    default:
      cursor.skip(kValueBytes[type]);
  }
}

void consume_pair(FileCursor& cursor, GgufHeader& header, const Progress* progress) {
  std::string key = cursor.consume_text(kMostName);
  const std::uint64_t at = cursor.at();
  const auto type = cursor.take<std::uint32_t>();
  if (!cursor.ok()) return;
  if (type >= kValueTypes)
    return cursor.stop(ErrorKind::kDamaged,
                       fmt::format("a value at byte {} has the unknown type {}", at, type));
  if (type == kArray) {
    header.lengths[key] = skip_array(cursor, progress, 0);
  } else if (type == kText) {
    const auto length = cursor.take<std::uint64_t>();
    if (length > kMaxKeptTextBytes) {
      cursor.skip(length);
    } else {
      std::string text(static_cast<std::size_t>(length), '\0');
      for (char& c : text) c = static_cast<char>(cursor.take<std::uint8_t>());
      header.texts[key] = std::move(text);
    }
  } else {
    consume_number_of(cursor, header, key, type);
  }
  header.keys.push_back(std::move(key));
}

std::optional<std::uint64_t> bytes_of_blocks(const GgufTensor& tensor) {
  const auto elements = checked_volume(tensor.shape);
  if (!elements || tensor.type == nullptr) return std::nullopt;
  const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % tensor.type->elements != 0) return std::nullopt;
  return checked_mul(static_cast<std::uint64_t>(*elements) / tensor.type->elements,
                     std::uint64_t{tensor.type->bytes});
}

void consume_tensor(FileCursor& cursor, GgufHeader& header) {
  GgufTensor tensor;
  tensor.descriptor_offset = cursor.at();
  tensor.name = cursor.consume_text(kMostName);
  const auto ndim = cursor.take<std::uint32_t>();
  if (ndim > kMostDims)
    return cursor.stop(
        ErrorKind::kDamaged,
        fmt::format("a tensor has {} dimensions; at most {} are allowed", ndim, kMostDims));
  for (std::uint32_t d = 0; d < ndim; ++d) {
    const auto extent = narrow<std::int64_t>(cursor.take<std::uint64_t>());
    if (!extent)
      return cursor.stop(ErrorKind::kDamaged, "a dimension of a tensor is larger than 2^63");
    tensor.shape.push_back(*extent);
  }
  std::reverse(tensor.shape.begin(), tensor.shape.end());
  tensor.type_id = cursor.take<std::uint32_t>();
  tensor.type = find_gguf_type(tensor.type_id);
  tensor.offset = cursor.take<std::uint64_t>();
  tensor.length = bytes_of_blocks(tensor);
  if (cursor.ok()) header.tensors.push_back(std::move(tensor));
}

Status check_version(FileCursor& cursor, std::uint32_t version) {
  if (version == 2 || version == 3) return {};
  if (std::uint32_t turned = __builtin_bswap32(version); turned >= 1 && turned <= 3)
    cursor.stop(ErrorKind::kUnsupported, "is a big-endian GGUF file, which is not supported");
  else
    cursor.stop(ErrorKind::kUnsupported,
                fmt::format("has GGUF version {}; versions 2 and 3 are supported", version));
  return cursor.error();
}

// Computes the alignment and the absolute offset of each tensor.
Status place_tensors(const ByteSource& source, std::uint64_t end, GgufHeader& header) {
  header.alignment = header.number("general.alignment").value_or(header.alignment);
  if (!std::has_single_bit(header.alignment) || header.alignment > std::uint64_t{1} << 30)
    return fail(
        ErrorKind::kDamaged,
        fmt::format("general.alignment is {}, but must be a power of two", header.alignment),
        {source.name(), end});
  header.data_begin = (end + header.alignment - 1) / header.alignment * header.alignment;
  for (GgufTensor& tensor : header.tensors) {
    const auto offset = checked_add(tensor.offset, header.data_begin);
    if (!offset || !narrow<std::int64_t>(*offset))
      return fail(ErrorKind::kDamaged,
                  fmt::format("{} is recorded at byte {} of the data", tensor.name, tensor.offset),
                  {source.name(), tensor.descriptor_offset});
    tensor.offset = *offset;
  }
  return {};
}

}  // namespace

std::optional<std::uint64_t> GgufHeader::number(const std::string& key) const {
  const auto found = numbers.find(key);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}
std::string GgufHeader::text(const std::string& key) const {
  const auto found = texts.find(key);
  return found == texts.end() ? std::string() : found->second;
}

Result<GgufHeader> read_gguf_header(const ByteSource& source, const Progress* progress) {
  SHW_CHECK(check_is_no_lfs_pointer(source));
  FileCursor cursor(source);
  GgufHeader header;
  if (cursor.take<std::uint32_t>() != kGgufMagic && cursor.ok())
    return fail(ErrorKind::kDamaged, "does not begin with the GGUF magic number",
                {source.name(), 0});
  header.version = cursor.take<std::uint32_t>();
  if (!cursor.ok()) return cursor.error();
  SHW_CHECK(check_version(cursor, header.version));
  const auto tensors = cursor.take<std::uint64_t>(), pairs = cursor.take<std::uint64_t>();
  for (std::uint64_t i = 0; i < pairs && cursor.ok() && !is_cancelled(progress); ++i)
    consume_pair(cursor, header, progress);
  for (std::uint64_t i = 0; i < tensors && cursor.ok() && !is_cancelled(progress); ++i)
    consume_tensor(cursor, header);
  if (is_cancelled(progress)) return cancelled_error();
  if (!cursor.ok()) return cursor.error();
  SHW_CHECK(place_tensors(source, cursor.at(), header));
  return header;
}

}  // namespace shw
