#include "core/formats/weight_list/protobuf_fields.h"

#include <string>

namespace shw {
namespace {

constexpr std::size_t kMaxDimensions = 64;

void consume_dimension(FileCursor& cursor, Extents& sizes) {
  const std::uint64_t size = consume_varint(cursor);
  if (size > (std::uint64_t{1} << 62) || sizes.size() == kMaxDimensions)
    return cursor.stop(ErrorKind::kDamaged, "an array has impossible sizes");
  sizes.push_back(static_cast<std::int64_t>(size));
}

}  // namespace

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

ProtobufField consume_protobuf_field(FileCursor& cursor) {
  const std::uint64_t key = consume_varint(cursor);
  ProtobufField field{key >> 3, static_cast<unsigned>(key & 7), 0};
  if (field.wire == kProtobufBytes) field.length = consume_varint(cursor);
  if (cursor.ok() && field.length > cursor.left())
    cursor.stop(ErrorKind::kDamaged,
                "is truncated: a field of " + std::to_string(field.length) + " bytes begins here");
  return field;
}

void skip_protobuf_field(FileCursor& cursor, const ProtobufField& field) {
  if (field.wire == kProtobufVarint)
    (void)consume_varint(cursor);
  else if (field.wire == kProtobufBytes)
    cursor.skip(field.length);
  else if (field.wire == kProtobufFixed64 || field.wire == kProtobufFixed32)
    cursor.skip(field.wire == kProtobufFixed64 ? 8 : 4);
  else
    cursor.stop(ErrorKind::kDamaged, "a field has an invalid protobuf type");
}

void consume_dimensions(FileCursor& cursor, const ProtobufField& field, Extents& sizes) {
  if (field.wire == kProtobufVarint) return consume_dimension(cursor, sizes);
  if (field.wire != kProtobufBytes) return skip_protobuf_field(cursor, field);
  const std::uint64_t end = cursor.at() + field.length;
  while (cursor.ok() && cursor.at() < end) consume_dimension(cursor, sizes);
  if (cursor.at() > end) cursor.stop(ErrorKind::kDamaged, "the sizes of an array end elsewhere");
}

}  // namespace shw
