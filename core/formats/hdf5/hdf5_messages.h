// The supported messages of object headers.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/bytes.h"

namespace shw {

inline constexpr std::uint16_t kHdf5Nothing = 0x00, kHdf5Dataspace = 0x01, kHdf5LinkInfo = 0x02,
                               kHdf5Datatype = 0x03, kHdf5OldFill = 0x04, kHdf5Fill = 0x05,
                               kHdf5Link = 0x06, kHdf5ExternalFiles = 0x07, kHdf5Layout = 0x08,
                               kHdf5Filters = 0x0B, kHdf5GroupInfo = 0x0A, kHdf5Attribute = 0x0C,
                               kHdf5Continuation = 0x10, kHdf5SymbolTable = 0x11,
                               kHdf5NodeSizes = 0x13, kHdf5Driver = 0x14, kHdf5AttributeInfo = 0x15;

// Cached contents of symbols: none, a group's addresses, or a symbolic link.
inline constexpr std::uint32_t kHdf5LastSymbolKind = 2;

// Validates messages that are not needed here but that libhdf5 checks: link and attribute info,
// modification time, reference count, and versions of types and filters. Other messages are
// validated where they are parsed.
bool is_message(std::uint16_t type, BytesView body, bool is_old);

// Limit for a name including its groups, and for the path of a soft link.
inline constexpr std::size_t kLongestHdf5Path = 4096;

bool is_hdf5(BytesView first_bytes);
bool has_hdf5_signature(BytesView bytes, std::string_view magic);

}  // namespace shw
