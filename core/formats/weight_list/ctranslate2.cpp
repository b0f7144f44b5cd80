#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/little_endian.h"
#include "core/formats/common/file_cursor.h"
#include "core/formats/weight_list/weight_list.h"

namespace shw {
namespace {

constexpr std::uint32_t kOldestVersion = 4, kNewestVersion = 6;
constexpr std::uint64_t kMaxVariableName = 4096;
constexpr std::uint32_t kMaxArrays = 1 << 22;
// By the number of CTranslate2's DataType.
constexpr auto kDtypes = std::to_array<Dtype>({Dtype::kFloat32, Dtype::kInt8, Dtype::kInt16,
                                               Dtype::kInt32, Dtype::kFloat16, Dtype::kBfloat16});

// A text with its length before and a zero at its end.
std::string claim_name(FileCursor& cursor) {
  std::string name = cursor.text_of(cursor.take<std::uint16_t>(), kMaxVariableName);
  if (!cursor.ok()) return name;
  if (name.empty() || name.back() != '\0')
    cursor.stop(ErrorKind::kDamaged, "a name has no terminating zero byte");
  else
    name.pop_back();
  return name;
}

ListedWeight consume_weight_array(FileCursor& cursor) {
  ListedWeight array;
  array.name = claim_name(cursor);
  const auto rank = cursor.take<std::uint8_t>();
  for (unsigned i = 0; i < rank && cursor.ok(); ++i)
    array.sizes.push_back(cursor.take<std::uint32_t>());
  const auto type = cursor.take<std::uint8_t>();
  if (type < kDtypes.size()) array.dtype = kDtypes[type];
  array.length = cursor.take<std::uint32_t>();
  array.offset = cursor.at();
  cursor.skip(array.length);
  return array;
}

}  // namespace

bool begins_as_ctranslate2(BytesView first) {
  constexpr std::size_t kBegin = 6;
  if (first.size() < kBegin) return false;
  const auto version = load_little<std::uint32_t>(first);
  const std::size_t length = load_little<std::uint16_t>(first, 4);
  if (version == 0 || version > 64 || length < 2 || length > first.size() - kBegin) return false;
  const BytesView name = first.subspan(kBegin, length);
  return name.back() == std::byte{0} &&
         std::all_of(name.begin(), name.end() - 1, [](std::byte byte) {
           const char c = static_cast<char>(byte);
           return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
         });
}

Result<WeightList> read_ctranslate2(const ByteSource& source) {
  FileCursor cursor(source);
  const auto version = cursor.take<std::uint32_t>();
  if (version < kOldestVersion || version > kNewestVersion)
    return fail(ErrorKind::kUnsupported,
                fmt::format("has CTranslate2 format version {}; {} to {} are supported", version,
                            kOldestVersion, kNewestVersion),
                {source.name(), 0});
  (void)claim_name(cursor);            // the class of the model
  (void)cursor.take<std::uint32_t>();  // its revision
  const auto count = cursor.take<std::uint32_t>();
  if (count > kMaxArrays) cursor.stop(ErrorKind::kDamaged, "too many arrays are listed");
  WeightList list;
  for (std::uint32_t i = 0; i < count && cursor.ok(); ++i)
    list.arrays.push_back(consume_weight_array(cursor));
  const auto aliases = cursor.take<std::uint32_t>();
  for (std::uint32_t i = 0; i < aliases && cursor.ok(); ++i) {
    std::string alias = claim_name(cursor);
    list.aliases.emplace_back(std::move(alias), claim_name(cursor));
  }
  if (!cursor.ok()) return cursor.error();
  return list;
}

}  // namespace shw
