#include <algorithm>
#include <array>
#include <string_view>

#include "core/formats/common/file_cursor.h"
#include "core/formats/weight_list/weight_list.h"

namespace shw {
namespace {

constexpr std::uint64_t kMostText = 4096;
constexpr std::size_t kMostDimensions = 64;
enum Wire : unsigned { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

struct NamedDtype {
  std::string_view name;
  Dtype dtype;
};
constexpr auto kTypes = std::to_array<NamedDtype>({{"Float32", Dtype::kFloat32},
                                                   {"Float16", Dtype::kFloat16},
                                                   {"BFloat16", Dtype::kBfloat16},
                                                   {"Float64", Dtype::kFloat64},
                                                   {"Int8", Dtype::kInt8},
                                                   {"Int16", Dtype::kInt16},
                                                   {"Int32", Dtype::kInt32},
                                                   {"Int64", Dtype::kInt64},
                                                   {"UInt8", Dtype::kUint8},
                                                   {"UInt16", Dtype::kUint16},
                                                   {"UInt32", Dtype::kUint32},
                                                   {"UInt64", Dtype::kUint64},
                                                   {"Bool", Dtype::kBool}});

std::uint64_t consume_varint(FileCursor& cursor) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && cursor.ok(); shift += 7) {
    const auto byte = cursor.take<std::uint8_t>();
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  cursor.stop(ErrorKind::kDamaged, "a number is longer than 64 bits");
  return 0;
}

// A field of a protobuf message; `length` of kLength only. The cursor is at its value.
struct Field {
  std::uint64_t number = 0;
  unsigned wire = 0;
  std::uint64_t length = 0;
};
Field consume_field(FileCursor& cursor) {
  const std::uint64_t key = consume_varint(cursor);
  Field field{key >> 3, static_cast<unsigned>(key & 7), 0};
  if (field.wire == kLength) field.length = consume_varint(cursor);
  if (cursor.ok() && field.length > cursor.left())
    cursor.stop(ErrorKind::kDamaged,
                "is cut off: a field of " + std::to_string(field.length) + " bytes begins here");
  return field;
}

void skip_field(FileCursor& cursor, const Field& field) {
  if (field.wire == kVarint)
    (void)consume_varint(cursor);
  else if (field.wire == kLength)
    cursor.skip(field.length);
  else if (field.wire == kFixed64 || field.wire == kFixed32)
    cursor.skip(field.wire == kFixed64 ? 8 : 4);
  else
    cursor.stop(ErrorKind::kDamaged, "a field is of a kind that protobuf does not have");
}

void consume_dimension(FileCursor& cursor, ListedWeight& array) {
  const std::uint64_t size = consume_varint(cursor);
  if (size > (std::uint64_t{1} << 62) || array.sizes.size() == kMostDimensions)
    return cursor.stop(ErrorKind::kDamaged, "an array has sizes that cannot be");
  array.sizes.push_back(static_cast<std::int64_t>(size));
}

void consume_mindspore_tensor(FileCursor& cursor, std::uint64_t end, ListedWeight& array) {
  while (cursor.ok() && cursor.at() < end) {
    const Field field = consume_field(cursor);
    if (field.number == 1 && field.wire == kVarint) {
      consume_dimension(cursor, array);
    } else if (field.number == 1 && field.wire == kLength) {
      const std::uint64_t last = cursor.at() + field.length;
      while (cursor.ok() && cursor.at() < last) consume_dimension(cursor, array);
    } else if (field.number == 2 && field.wire == kLength) {
      const std::string type = cursor.text_of(field.length, kMostText);
      for (const NamedDtype& known : kTypes) {
        if (known.name == type) array.dtype = known.dtype;
      }
    } else {
      if (field.number == 3) {
        array.offset = cursor.at();
        array.length = field.length;
      }
      skip_field(cursor, field);
    }
  }
}

ListedWeight consume_mindspore_value(FileCursor& cursor, std::uint64_t end) {
  ListedWeight array;
  while (cursor.ok() && cursor.at() < end) {
    const Field field = consume_field(cursor);
    if (field.number == 1 && field.wire == kLength)
      array.name = cursor.text_of(field.length, kMostText);
    else if (field.number == 2 && field.wire == kLength)
      consume_mindspore_tensor(cursor, cursor.at() + field.length, array);
    else
      skip_field(cursor, field);
  }
  if (cursor.ok() && cursor.at() != end)
    cursor.stop(ErrorKind::kDamaged, "an array ends elsewhere than its length says");
  return array;
}

}  // namespace

// Value{name}: 0x0A length 0x0A length name 0x12.
bool begins_as_mindspore(BytesView first) {
  constexpr std::byte kFirst{0x0A}, kSecond{0x12};
  if (first.size() < 8 || first[0] != kFirst) return false;
  std::size_t at = 1;
  while (at < 10 && at < first.size() && (first[at] & std::byte{0x80}) != std::byte{0}) ++at;
  ++at;
  if (at + 1 >= first.size() || first[at] != kFirst) return false;
  const auto length = std::to_integer<std::size_t>(first[at + 1]);
  const std::size_t end = at + 2 + length;
  if (length == 0 || length > 127 || end >= first.size() || first[end] != kSecond) return false;
  return std::all_of(first.begin() + static_cast<std::ptrdiff_t>(at) + 2,
                     first.begin() + static_cast<std::ptrdiff_t>(end), [](std::byte byte) {
                       return byte > std::byte{' '} && byte < std::byte{0x7F};
                     });
}

Result<WeightList> read_mindspore(const ByteSource& source) {
  FileCursor cursor(source);
  WeightList list;
  while (cursor.ok() && cursor.left() > 0) {
    const Field field = consume_field(cursor);
    if (field.number == 1 && field.wire == kLength)
      list.arrays.push_back(consume_mindspore_value(cursor, cursor.at() + field.length));
    else
      skip_field(cursor, field);
  }
  if (!cursor.ok()) return cursor.error();
  return list;
}

}  // namespace shw
