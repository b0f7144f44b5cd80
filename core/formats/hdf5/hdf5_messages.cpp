#include "core/formats/hdf5/hdf5_messages.h"

#include <algorithm>

#include "core/formats/hdf5/hdf5_cursor.h"

namespace shw {
namespace {

constexpr std::uint16_t kHdf5OldTime = 0x0E, kHdf5Time = 0x12, kHdf5Uses = 0x16;

// Layout: version, flags, optional fields according to flags, addresses.
bool matches_version_0_layout(BytesView body, std::size_t per_flag, std::size_t addresses) {
  constexpr std::uint8_t kKnown = 3;
  Hdf5Cursor cursor(body);
  const auto version = cursor.take<std::uint8_t>(), flags = cursor.take<std::uint8_t>();
  if (flags & 1) cursor.skip(per_flag);
  cursor.skip(8 * (addresses + (flags & 2 ? 1 : 0)));
  return cursor.ok() && version == 0 && (flags & ~kKnown) == 0;
}

// True for a time such as "20261125160000", followed by two ignored bytes.
bool is_hdf5_old_mtime_message(BytesView body) {
  constexpr std::size_t kDigits = 14, kSize = 16;
  return body.size() >= kSize && std::all_of(body.begin(), body.begin() + kDigits, [](std::byte b) {
           return b >= std::byte{'0'} && b <= std::byte{'9'};
         });
}

}  // namespace

bool is_message(std::uint16_t type, BytesView body, bool is_old) {
  Hdf5Cursor cursor(body);
  switch (type) {
    case kHdf5LinkInfo:
      return matches_version_0_layout(body, 8, 2);
    case kHdf5AttributeInfo:
      return matches_version_0_layout(body, 2, 2);
    case kHdf5GroupInfo: {
      const auto version = cursor.take<std::uint8_t>(), flags = cursor.take<std::uint8_t>();
      cursor.skip((flags & 1 ? 4u : 0u) + (flags & 2 ? 4u : 0u));
      return cursor.ok() && version == 0 && (flags & ~3) == 0;
    }
    case kHdf5Datatype:
      return cursor.take<std::uint8_t>() >> 4 != 0;
    case kHdf5Filters: {
      const auto version = cursor.take<std::uint8_t>();
      return version == 1 || version == 2;
    }
    case kHdf5OldTime:
      return is_hdf5_old_mtime_message(body);
    case kHdf5Time:
      return body.size() >= 8 && body[0] == std::byte{1};
    case kHdf5Uses:
      return !is_old && body.size() >= 5 && body[0] == std::byte{0};
    default:
      return true;
  }
}

}  // namespace shw
