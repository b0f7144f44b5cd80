// The value of a non-tensor entry, if it is plain data. Parsed from its pickle, never executed.
//
//   item   = torch.save archive with data.pkl | pickle, either of them in a zstd frame
//   value  = None | bool | int | float | text | bytes | list | tuple | set | dict
//          | OrderedDict and other holders: as the dict or list that they hold
//          | a tensor of one number: as that number
//          | torch.Size: as a list
//          | anything else: kOther
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/io/source.h"
#include "core/model/checkpoint.h"

namespace shw {

struct PlainValue {
  enum class Kind : std::uint8_t { kOther, kNone, kNumber, kText, kList, kDict };
  Kind kind = Kind::kOther;
  double number = 0;              // also bools
  std::string text;               // at most 4096 bytes
  std::vector<PlainValue> items;  // list, tuple or set items; key, value, key, value of a dict
  bool operator==(const PlainValue&) const = default;
};

// The value of a key; null if it is not a dict or lacks the key.
const PlainValue* find(const PlainValue& dict, std::string_view key);
// "0.001", "(0.9, 0.95)", "None": short text for evidence.
std::string to_text(const PlainValue& value);

// Reads the item at [offset, offset + length) of the source. Larger items than `limit` are
// kUnsupported; memory is a small multiple of the bytes read.
Result<PlainValue> read_plain_value(std::shared_ptr<const ByteSource> source, std::uint64_t offset,
                                    std::uint64_t length, std::uint64_t limit);
Result<PlainValue> read_plain_value(const Checkpoint& checkpoint, std::size_t object,
                                    std::uint64_t limit);

// The pickle opcodes that rebuild an entry's value in another format (common/plain_pickle.h).
// kUnsupported if the value is not plain data; the error names the class.
Result<std::string> read_plain_opcodes(const Checkpoint& checkpoint, std::size_t object);
Result<std::string> read_plain_opcodes(const Checkpoint& checkpoint, const ItemPlace& item);

}  // namespace shw
