#include <algorithm>
#include <array>
#include <string_view>

#include "core/formats/common/file_cursor.h"
#include "core/formats/weight_list/protobuf_fields.h"
#include "core/formats/weight_list/weight_list.h"

namespace shw {
namespace {

constexpr std::uint64_t kMostText = 4096;

struct NamedDtype {
  std::string_view name;
  Dtype dtype;
};
constexpr auto kMindsporeDtypes = std::to_array<NamedDtype>({{"Float32", Dtype::kFloat32},
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

void consume_mindspore_tensor(FileCursor& cursor, std::uint64_t end, ListedWeight& array) {
  while (cursor.ok() && cursor.at() < end) {
    const ProtobufField field = consume_protobuf_field(cursor);
    if (field.number == 1) {
      consume_dimensions(cursor, field, array.sizes);
    } else if (field.number == 2 && field.wire == kProtobufBytes) {
      const std::string type = cursor.text_of(field.length, kMostText);
      for (const NamedDtype& known : kMindsporeDtypes) {
        if (known.name == type) array.dtype = known.dtype;
      }
    } else {
      if (field.number == 3) {
        array.offset = cursor.at();
        array.length = field.length;
      }
      skip_protobuf_field(cursor, field);
    }
  }
}

ListedWeight consume_mindspore_value(FileCursor& cursor, std::uint64_t end) {
  ListedWeight array;
  while (cursor.ok() && cursor.at() < end) {
    const ProtobufField field = consume_protobuf_field(cursor);
    if (field.number == 1 && field.wire == kProtobufBytes)
      array.name = cursor.text_of(field.length, kMostText);
    else if (field.number == 2 && field.wire == kProtobufBytes)
      consume_mindspore_tensor(cursor, cursor.at() + field.length, array);
    else
      skip_protobuf_field(cursor, field);
  }
  if (cursor.ok() && cursor.at() != end)
    cursor.stop(ErrorKind::kDamaged, "an array's end does not match its length");
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
    const ProtobufField field = consume_protobuf_field(cursor);
    if (field.number == 1 && field.wire == kProtobufBytes)
      list.arrays.push_back(consume_mindspore_value(cursor, cursor.at() + field.length));
    else
      skip_protobuf_field(cursor, field);
  }
  if (!cursor.ok()) return cursor.error();
  return list;
}

}  // namespace shw
