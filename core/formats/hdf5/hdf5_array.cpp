// Describes a dataset from its messages: type, shape, place, and attributes of a shard.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/base/checked.h"
#include "core/formats/hdf5/hdf5_cursor.h"
#include "core/formats/hdf5/hdf5_fill.h"
#include "core/formats/hdf5/hdf5_messages.h"
#include "core/formats/hdf5/hdf5_object.h"

namespace shw {
namespace {

// A datatype as the type of a tensor's elements.
struct Hdf5Type {
  Dtype dtype = Dtype::kUnknown;
  Hdf5Unsupported unread = Hdf5Unsupported::kNothing;
  bool ok = true;  // false: truncated, or invalid for its class
};

struct FloatLayout {
  std::uint32_t size;
  std::uint8_t sign, exponent_at, exponent_bits, mantissa_at, mantissa_bits;
  std::uint32_t bias;
  Dtype dtype;
};
constexpr FloatLayout kHdf5Floats[] = {
    {8, 63, 52, 11, 0, 52, 1023, Dtype::kFloat64}, {4, 31, 23, 8, 0, 23, 127, Dtype::kFloat32},
    {2, 15, 10, 5, 0, 10, 15, Dtype::kFloat16},    {2, 15, 7, 8, 0, 7, 127, Dtype::kBfloat16},
    {1, 7, 2, 5, 0, 2, 15, Dtype::kFloat8E5m2},
};
// HDF5 uses the greatest exponent of 4-bit-exponent floats for infinity, unlike torch's float8
// types, so that type is not in the table above.

constexpr unsigned kLastTypeVersion = 5;  // HDF5 2.0

constexpr Hdf5Type kOtherType{Dtype::kUnknown, Hdf5Unsupported::kOtherType};
constexpr Hdf5Type kTooShort{Dtype::kUnknown, Hdf5Unsupported::kNothing, false};

Hdf5Type in_order(Dtype dtype, bool is_big_endian) {
  return {dtype, is_big_endian ? Hdf5Unsupported::kBigEndian : Hdf5Unsupported::kNothing};
}

Hdf5Type whole_number(Hdf5Cursor cursor, std::uint32_t bits, std::uint32_t size) {
  const auto offset = cursor.take<std::uint16_t>(), precision = cursor.take<std::uint16_t>();
  // Other bits belong to other classes.
  if (!cursor.ok() || (bits & ~0xFu) != 0) return kTooShort;
  if (offset != 0 || precision != size * 8) return kOtherType;
  const bool is_signed = (bits & 8) != 0, is_big = (bits & 1) != 0;
  switch (size) {
    case 1:
      return in_order(is_signed ? Dtype::kInt8 : Dtype::kUint8, false);
    case 2:
      return in_order(is_signed ? Dtype::kInt16 : Dtype::kUint16, is_big);
    case 4:
      return in_order(is_signed ? Dtype::kInt32 : Dtype::kUint32, is_big);
    case 8:
      return in_order(is_signed ? Dtype::kInt64 : Dtype::kUint64, is_big);
    default:
      return kOtherType;
  }
}

Hdf5Type floating_point(Hdf5Cursor cursor, std::uint32_t bits, std::uint32_t size) {
  const auto offset = cursor.take<std::uint16_t>(), precision = cursor.take<std::uint16_t>();
  FloatLayout seen{};
  seen.size = size;
  seen.sign = static_cast<std::uint8_t>(bits >> 8);
  seen.exponent_at = cursor.take<std::uint8_t>();
  seen.exponent_bits = cursor.take<std::uint8_t>();
  seen.mantissa_at = cursor.take<std::uint8_t>();
  seen.mantissa_bits = cursor.take<std::uint8_t>();
  seen.bias = cursor.take<std::uint32_t>();
  if (!cursor.ok()) return kTooShort;
  for (const FloatLayout& known : kHdf5Floats) {
    if (known.size == size && offset == 0 && precision == size * 8 && known.sign == seen.sign &&
        known.exponent_at == seen.exponent_at && known.exponent_bits == seen.exponent_bits &&
        known.mantissa_at == seen.mantissa_at && known.mantissa_bits == seen.mantissa_bits &&
        known.bias == seen.bias && (bits >> 4 & 3) == 2)
      return in_order(known.dtype, size > 1 && (bits & 0x41) != 0);
  }
  return kOtherType;
}

// h5py's bool: an enumeration of one byte with members FALSE and TRUE.
Hdf5Type enumeration(Hdf5Cursor cursor, std::uint32_t bits, std::uint32_t size, int version) {
  constexpr std::uint32_t kMembers = 2;
  if ((bits & 0xFFFF) != kMembers || size != 1) return kOtherType;
  const auto kind = cursor.take<std::uint8_t>();
  const auto bits_beneath = static_cast<std::uint32_t>(cursor.consume_number_of_size(3));
  const auto size_beneath = cursor.take<std::uint32_t>();
  if ((kind >> 4) == 0 || (kind >> 4) > kLastTypeVersion || size_beneath != size) return kTooShort;
  if ((kind & 15) != 0) return kOtherType;
  const Hdf5Type beneath = whole_number(cursor, bits_beneath, size_beneath);
  if (!beneath.ok || beneath.unread != Hdf5Unsupported::kNothing) return beneath;
  cursor.skip(4);  // offset and precision of the base type
  std::string names[kMembers];
  for (std::string& name : names) {
    for (char c = cursor.take<char>(); c != 0 && cursor.ok(); c = cursor.take<char>()) name += c;
    if (version < 3) cursor.skip((8 - (name.size() + 1) % 8) % 8);
  }
  const auto no = cursor.take<std::uint8_t>(), yes = cursor.take<std::uint8_t>();
  if (!cursor.ok()) return kTooShort;
  if (names[0] != "FALSE" || names[1] != "TRUE" || no != 0 || yes != 1) return kOtherType;
  return {Dtype::kBool};
}

// Layout: class and version, 3 bytes of bits, size, properties.
Hdf5Type hdf5_type_of(BytesView body) {
  Hdf5Cursor cursor(body);
  const auto kind = cursor.take<std::uint8_t>();
  const auto bits = static_cast<std::uint32_t>(cursor.consume_number_of_size(3));
  const auto size = cursor.take<std::uint32_t>();
  if (!cursor.ok()) return kTooShort;
  const unsigned number = kind & 15, version = kind >> 4;
  if (version == 0) return kTooShort;
  if (version > kLastTypeVersion) return kOtherType;
  if (number == 0) return whole_number(cursor, bits, size);
  if (number == 1) return floating_point(cursor, bits, size);
  if (number == 8) return enumeration(cursor, bits, size, static_cast<int>(version));
  return kOtherType;
}

// Empty if truncated; a null dataspace has no shape.
struct Hdf5Space {
  Extents shape;
  bool is_null = false, ok = true;
};
Hdf5Space hdf5_space_of(BytesView body) {
  constexpr std::size_t kMostRanks = 32;
  constexpr std::uint8_t kScalar = 0, kSimple = 1, kNull = 2;
  Hdf5Cursor cursor(body);
  Hdf5Space space;
  const auto version = cursor.take<std::uint8_t>(), rank = cursor.take<std::uint8_t>();
  const bool has_limits = (cursor.take<std::uint8_t>() & 1) != 0;
  const auto kind = cursor.take<std::uint8_t>();
  if (version == 1) cursor.skip(4);
  space.is_null = version == 2 && kind == kNull;
  const bool is_kind = version == 1 || (rank == 0 && kind == kScalar) || kind == kSimple ||
                       (rank == 0 && kind == kNull);
  for (int d = 0; d < rank; ++d)
    space.shape.push_back(static_cast<std::int64_t>(cursor.take<std::uint64_t>()));
  // Checks that no extent exceeds its maximum.
  bool fits = true;
  for (std::size_t d = 0; has_limits && d < space.shape.size(); ++d)
    fits = static_cast<std::uint64_t>(space.shape[d]) <= cursor.take<std::uint64_t>() && fits;
  space.ok = fits && is_kind && cursor.ok() && (version == 1 || version == 2) && rank <= kMostRanks;
  return space;
}

bool is_whole_number(Dtype dtype) {
  constexpr auto kWhole =
      std::to_array({Dtype::kInt8, Dtype::kUint8, Dtype::kInt16, Dtype::kUint16, Dtype::kInt32,
                     Dtype::kUint32, Dtype::kInt64, Dtype::kUint64});
  return std::find(kWhole.begin(), kWhole.end(), dtype) != kWhole.end();
}

// Reads an integer of the type in its byte order.
std::int64_t consume_attribute_number(Hdf5Cursor& cursor, const Hdf5Type& type) {
  const std::size_t size = size_of(type.dtype);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t byte = cursor.take<std::uint8_t>();
    const std::size_t place = type.unread == Hdf5Unsupported::kBigEndian ? size - 1 - i : i;
    number |= byte << (8 * place);
  }
  const bool is_signed = type.dtype == Dtype::kInt8 || type.dtype == Dtype::kInt16 ||
                         type.dtype == Dtype::kInt32 || type.dtype == Dtype::kInt64;
  const std::size_t above = 64 - 8 * size;
  return is_signed ? static_cast<std::int64_t>(number << above) >> above
                   : static_cast<std::int64_t>(number);
}

struct Hdf5NamedExtents {
  std::string name;
  bool is_shared = false;          // its type or shape is stored elsewhere
  std::optional<Extents> numbers;  // if it is a list of integers
};

// Parses an integer attribute. Version 1 pads parts to 8 bytes, version 3 adds a character set.
std::optional<Hdf5NamedExtents> attribute_of(BytesView body) {
  Hdf5Cursor cursor(body);
  const auto version = cursor.take<std::uint8_t>();
  const bool is_shared = (cursor.take<std::uint8_t>() & 3) != 0;  // type or shape stored elsewhere
  const std::size_t name_size = cursor.take<std::uint16_t>(),
                    type_size = cursor.take<std::uint16_t>(),
                    space_size = cursor.take<std::uint16_t>();
  if (version == 3) cursor.skip(1);
  if (version < 1 || version > 3) return std::nullopt;
  auto padded = [&](std::size_t size) { return version == 1 ? (size + 7) / 8 * 8 : size; };
  Hdf5NamedExtents out;
  out.name = cursor.consume_text(padded(name_size));
  out.name.resize(std::min(out.name.find('\0'), out.name.size()));
  const std::size_t type_at = cursor.at();
  cursor.skip(padded(type_size));
  const std::size_t space_at = cursor.at();
  cursor.skip(padded(space_size));
  if (!cursor.ok()) return std::nullopt;
  Hdf5Type type = hdf5_type_of(body.subspan(type_at, type_size));
  Hdf5Space space = hdf5_space_of(body.subspan(space_at, space_size));
  const bool is_list = space.ok && !space.is_null && space.shape.size() == 1 &&
                       space.shape[0] >= 0 && space.shape[0] <= std::int64_t{kMaxDims};
  out.is_shared = is_shared;
  if (is_shared || !is_list || !is_whole_number(type.dtype)) return out;
  Extents numbers;
  for (std::int64_t i = 0; i < space.shape[0]; ++i)
    numbers.push_back(consume_attribute_number(cursor, type));
  if (cursor.ok()) out.numbers = std::move(numbers);
  return out;
}

// Layout: version, count; per filter: id, length of the name, flags, count of numbers, name,
// numbers. False for filters other than deflate, and shuffle before it.
bool read_filters(BytesView body, Hdf5Array& array) {
  constexpr std::uint16_t kDeflate = 1, kShuffle = 2;
  constexpr std::uint32_t kMaxDeflateLevel = 9;
  Hdf5Cursor cursor(body);
  const auto version = cursor.take<std::uint8_t>(), count = cursor.take<std::uint8_t>();
  if (version == 1) cursor.skip(6);
  for (int i = 0; i < count; ++i) {
    const auto id = cursor.take<std::uint16_t>();
    const bool has_name = version == 1 || id >= 256;
    const std::size_t name_size = has_name ? cursor.take<std::uint16_t>() : 0u;
    cursor.skip(2);
    const std::size_t numbers = cursor.take<std::uint16_t>();
    cursor.skip(version == 1 ? (name_size + 7) / 8 * 8 : name_size);
    const auto number = numbers == 0 ? 0 : cursor.take<std::uint32_t>();
    cursor.skip(numbers == 0 ? 0 : (numbers - 1) * 4);
    cursor.skip(version == 1 && numbers % 2 != 0 ? 4 : 0);
    // Each supported filter has one number: the element's size, or the compression level.
    if (numbers != 1) return false;
    if (id == kShuffle && !array.is_shuffled && !array.is_deflated) {
      array.is_shuffled = true;
      array.shuffled_by = number;
    } else if (id == kDeflate && !array.is_deflated && number <= kMaxDeflateLevel)
      array.is_deflated = true;
    else
      return false;
  }
  // No known writer shuffles without deflating.
  return cursor.ok() && (version == 1 || version == 2) && array.is_deflated;
}

// Notes reasons, from further messages, why the dataset cannot be read.
void note_unread(const Hdf5Message& message, Hdf5Array& array) {
  auto note = [&](Hdf5Unsupported what) {
    array.unread = what;
    array.unread_offset = message.offset;
  };
  constexpr auto kRead = std::to_array<std::uint16_t>(
      {kHdf5Datatype, kHdf5Dataspace, kHdf5OldFill, kHdf5Fill, kHdf5Layout, kHdf5Filters});
  const bool describes = std::find(kRead.begin(), kRead.end(), message.type) != kRead.end();
  if (message.is_shared && describes) note(Hdf5Unsupported::kSharedType);
  if (message.type == kHdf5ExternalFiles) note(Hdf5Unsupported::kExternal);
  if (message.type == kHdf5Filters && !read_filters(message.body, array))
    note(Hdf5Unsupported::kFiltered);
  if (message.type != kHdf5AttributeInfo) return;
  Hdf5Cursor cursor(message.body);
  cursor.skip(1);
  if (cursor.take<std::uint8_t>() & 1) cursor.skip(2);
  if (cursor.take<std::uint64_t>() != kHdf5NoAddress) note(Hdf5Unsupported::kAttributes);
}

}  // namespace

Result<Hdf5Array> Hdf5Objects::array(const std::vector<Hdf5Message>& messages) {
  Hdf5Array array;
  const Hdf5Message *type_message = nullptr, *space_message = nullptr, *layout = nullptr,
                    *fill = nullptr;
  for (const Hdf5Message& message : messages) {
    if (message.type == kHdf5Datatype) type_message = &message;
    if (message.type == kHdf5Dataspace) space_message = &message;
    if (message.type == kHdf5Layout) layout = &message;
    // The old message is for programs that do not know the new one.
    if (message.type == kHdf5Fill || (message.type == kHdf5OldFill && fill == nullptr))
      fill = &message;
    note_unread(message, array);
  }
  if (type_message == nullptr || space_message == nullptr || layout == nullptr)
    return damaged("a dataset lacks its type or its shape",
                   messages.empty() ? 0 : messages.front().offset);
  for (const Hdf5Message& message : messages) SHW_CHECK(add_attribute(message, array));
  if (array.unread == Hdf5Unsupported::kSharedType) return array;
  Hdf5Type type = hdf5_type_of(type_message->body);
  Hdf5Space space = hdf5_space_of(space_message->body);
  if (!type.ok) return damaged("an element type is invalid", type_message->offset);
  if (!space.ok) return damaged("a shape cannot be", space_message->offset);
  array.dtype = type.dtype;
  array.shape = std::move(space.shape);
  if (type.unread != Hdf5Unsupported::kNothing || space.is_null) {
    array.unread = space.is_null ? Hdf5Unsupported::kOtherType : type.unread;
    array.unread_offset = type_message->offset;
    return array;
  }
  auto value = fill == nullptr ? Hdf5Fill{} : read_fill(*fill);
  if (!value) return damaged("a fill value is invalid", fill->offset);
  array.fill = std::move(*value);
  // A fill value of zeros is not in the file; any offset serves as its place.
  if (array.fill.value.empty()) array.fill.offset = layout->offset;
  SHW_CHECK(place_array(*layout, array));
  return array;
}

Status Hdf5Objects::add_attribute(const Hdf5Message& message, Hdf5Array& array) const {
  if (message.type != kHdf5Attribute) return {};
  auto attribute = attribute_of(message.body);
  if (!attribute) return damaged("an attribute cannot be", message.offset);
  if (attribute->name != "offsets" && attribute->name != "global_shape") return {};
  if (attribute->is_shared)
    return not_read(
        "the attribute " + attribute->name + " has a named type, which is not supported",
        message.offset);
  // Attributes of other programs; only lists of integers mark parts of larger tensors.
  if (!attribute->numbers) return {};
  (attribute->name == "offsets" ? array.offsets : array.global_shape) =
      std::move(attribute->numbers);
  return {};
}

// Layout in version 3: class and its properties; versions 4 and 5 are equal for contiguous data.
Status Hdf5Objects::place_array(const Hdf5Message& message, Hdf5Array& array) {
  auto elements = volume(array.shape);
  auto bytes = elements ? checked_mul(static_cast<std::uint64_t>(*elements),
                                      std::uint64_t{size_of(array.dtype)})
                        : std::nullopt;
  if (!bytes)
    return damaged("the shape " + to_text(array.shape) + " is impossible", message.offset);
  Hdf5Cursor cursor(message.body);
  const auto version = cursor.take<std::uint8_t>(), kind = cursor.take<std::uint8_t>();
  constexpr std::uint8_t kFirst = 1, kFirstRead = 3, kLast = 5;  // 5: HDF5 2.0
  if (version < kFirst || version > kLast)
    return damaged(fmt::format("its layout has the invalid version {}", version), message.offset);
  if (version < kFirstRead)
    return not_read(fmt::format("its layout has version {}, which is not supported", version),
                    message.offset);
  if (version == 3 && kind == 2 && array.unread == Hdf5Unsupported::kNothing)
    return place_tiles(message, array);
  if (kind == 2 || kind == 3 || array.unread != Hdf5Unsupported::kNothing) {
    if (array.unread == Hdf5Unsupported::kNothing) {
      array.unread = kind == 2 ? Hdf5Unsupported::kChunked : Hdf5Unsupported::kVirtual;
      array.unread_offset = message.offset;
    }
    return {};
  }
  std::uint64_t address = 0;
  if (kind == 0) {
    array.is_compact = true;
    array.length = cursor.take<std::uint16_t>();
    address = message.offset + cursor.at();
    if (array.length > cursor.left()) return damaged("elements reach beyond their block", address);
  } else if (kind == 1) {
    address = cursor.take<std::uint64_t>();
    array.length = cursor.take<std::uint64_t>();
  } else {
    return damaged(fmt::format("a layout class {} is invalid", kind), message.offset);
  }
  if (!cursor.ok()) return damaged("a layout cannot be", message.offset);
  if (address == kHdf5NoAddress) return {};
  if (array.length != *bytes)
    return damaged(fmt::format("{} bytes are reserved for {} of {}", array.length,
                               to_text(array.shape), name(array.dtype)),
                   message.offset);
  array.offset = address;
  return {};
}

}  // namespace shw
