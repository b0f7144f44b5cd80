// Compact storage of headers and check results, one per chunk: 24 bytes for a header and 8 for a
// check, instead of 168 bytes each.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "core/base/shared_results.h"
#include "core/formats/common/item_header.h"

namespace shw {

struct ItemHeaderParts {
  // The part shared between headers, with the fields of take() set to 0.
  static auto all_of(const ItemHeader& of) {
    return std::tie(of.dtype, of.sizes, of.strides, of.storage_offset, of.payload_offset,
                    of.payload_length, of.payload_crc, of.big_endian, of.conjugate, of.negative,
                    of.compressed);
  }
  struct Own {
    std::uint64_t payload_offset = 0;
    std::uint32_t payload_crc = 0;
  };
  static Own take(ItemHeader& header) {
    Own own{header.payload_offset, header.payload_crc.value_or(0)};
    header.payload_offset = 0;
    if (header.payload_crc) header.payload_crc = 0;
    return own;
  }
  static void put(ItemHeader& header, const Own& own) {
    header.payload_offset = own.payload_offset;
    if (header.payload_crc) header.payload_crc = own.payload_crc;
  }
  static bool before(const ItemHeader& a, const ItemHeader& b) { return all_of(a) < all_of(b); }
};
using ItemHeaders = CompactResults<ItemHeader, ItemHeaderParts>;
using ItemHeadersBuilder = CompactResultsBuilder<ItemHeader, ItemHeaderParts>;

// A matching checksum is stored as one number; mismatches are stored separately.
struct DataCheckParts {
  static auto all_of(const DataCheck& of) {
    const FloatCounts floats = of.floats.value_or(FloatCounts{});
    return std::tuple(of.crc, of.expected, of.actual, std::string_view(of.record), of.record_offset,
                      of.record_length, of.floats.has_value(), floats.count, floats.nan,
                      floats.infinite, floats.denormal, floats.zero, floats.huge);
  }
  struct Own {
    std::uint32_t crc = 0;
  };
  static Own take(DataCheck& check) {
    Own own;
    if (check.expected == check.actual) {
      own.crc = check.actual;
      check.expected = check.actual = 0;
    }
    return own;
  }
  static void put(DataCheck& check, const Own& own) {
    if (check.expected == check.actual) check.expected = check.actual = own.crc;
  }
  static bool before(const DataCheck& a, const DataCheck& b) { return all_of(a) < all_of(b); }
};
using ItemDataChecks = CompactResults<DataCheck, DataCheckParts>;
using ItemDataChecksBuilder = CompactResultsBuilder<DataCheck, DataCheckParts>;

}  // namespace shw
