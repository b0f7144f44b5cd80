// What an entry that is no tensor says, where it is plain data. Read from its pickle, never run.
//
//   item   = torch.save archive with data.pkl | pickle, either of them in a zstd frame
//   value  = None | bool | int | float | text | bytes | list | tuple | set | dict
//          | OrderedDict and other holders: as the dict or list that they hold
//          | a tensor of one number: as that number
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
  double number = 0;              // bools too
  std::string text;               // at most 4096 bytes of it
  std::vector<PlainValue> items;  // of a list, tuple or set; key, value, key, value of a dict
  bool operator==(const PlainValue&) const = default;
};

// The value of that key; null where it is no dict or has no such key.
const PlainValue* find(const PlainValue& dict, std::string_view key);
// "0.001", "(0.9, 0.95)", "None": short, for evidence.
std::string to_text(const PlainValue& value);

// The item that lies at [offset, offset + length) of the source. `limit`: no more bytes than that
// are read (kUnsupported), and the value takes no more than a small multiple of them.
Result<PlainValue> read_plain_value(std::shared_ptr<const ByteSource> source, std::uint64_t offset,
                                    std::uint64_t length, std::uint64_t limit);
Result<PlainValue> read_plain_value(const Checkpoint& checkpoint, std::size_t object,
                                    std::uint64_t limit);

// The opcodes that make the value of an entry again (common/plain_pickle.h): what another format
// writes of it. kUnsupported where it is more than plain data, with the class that it holds.
Result<std::string> read_plain_opcodes(const Checkpoint& checkpoint, std::size_t object);
Result<std::string> read_plain_opcodes(const Checkpoint& checkpoint, const ItemPlace& item);

}  // namespace shw
