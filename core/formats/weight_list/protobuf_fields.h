// Fields of protobuf messages, read sequentially (protobuf.dev, "Encoding").
//
//   message = (key value)*     key: varint of (number << 3 | wire type)
#pragma once

#include <cstdint>

#include "core/formats/common/file_cursor.h"
#include "core/tensor/extents.h"

namespace shw {

enum ProtobufWire : unsigned {
  kProtobufVarint = 0,
  kProtobufFixed64 = 1,
  kProtobufBytes = 2,  // text, nested message, or packed numbers
  kProtobufFixed32 = 5,
};

struct ProtobufField {
  std::uint64_t number = 0;
  unsigned wire = 0;
  std::uint64_t length = 0;  // of kProtobufBytes only
};

std::uint64_t consume_varint(FileCursor& cursor);
// Stops at the field's value. A length beyond the end of the file is an error of the cursor.
ProtobufField consume_protobuf_field(FileCursor& cursor);
void skip_protobuf_field(FileCursor& cursor, const ProtobufField& field);

// Appends the sizes in a field of repeated int64, packed or one each. More than 64, or one beyond
// 2^62, is an error of the cursor.
void consume_dimensions(FileCursor& cursor, const ProtobufField& field, Extents& sizes);

}  // namespace shw
