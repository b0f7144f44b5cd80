#include "core/formats/common/item_template.h"

#include <doctest/doctest.h>

#include <random>

using namespace shw;

namespace {

// The bytes around the payload of a newly written item.
Bytes around(Dtype dtype, const Extents& sizes, std::uint64_t length, std::uint32_t crc) {
  HoleSkippingSink sink;
  REQUIRE(write_torch_item(sink, dtype, sizes, hole_payload(length, crc)));
  Bytes all;
  for (const HoleSkippingSink::Part& part : sink.parts)
    all.insert(all.end(), part.bytes.begin(), part.bytes.end());
  return all;
}

}  // namespace

TEST_CASE("items that are equal differ in what the CRC of their payload says alone") {
  std::mt19937 random(7);
  for (auto d = static_cast<std::size_t>(Dtype::kUnknown) + 1;
       d < static_cast<std::size_t>(Dtype::kCount); ++d) {
    const auto dtype = static_cast<Dtype>(d);
    // The last one needs zip64.
    for (const Extents& sizes : {Extents{}, Extents{0}, Extents{2, 3}, Extents{70'000},
                                 Extents{2, 2, 2, 2}, Extents{std::int64_t{5} << 30}}) {
      CAPTURE(name(dtype));
      CAPTURE(to_text(sizes));
      const std::uint64_t length = static_cast<std::uint64_t>(*volume(sizes)) * size_of(dtype);
      auto alike = ItemTemplate::of(dtype, sizes, length);
      REQUIRE(alike.has_value());
      CHECK(alike->are(dtype, sizes));
      CHECK_FALSE(alike->are(dtype, Extents{1, 1, 1}));
      for (int i = 0; i < 5; ++i) {
        const std::uint32_t crc = length == 0 ? 0
                                  : i == 0    ? 0xFFFFFFFFu
                                              : static_cast<std::uint32_t>(random());
        const BytesView before = alike->before(), behind = alike->behind(crc);
        Bytes all(before.begin(), before.end());
        all.insert(all.end(), behind.begin(), behind.end());
        CHECK(all == around(dtype, sizes, length, crc));
        CHECK(alike->payload() == before.size());
        CHECK(alike->length() == before.size() + length + behind.size());
      }
    }
  }
  CHECK_FALSE(ItemTemplate::of(Dtype::kFloat32, Extents{2}, 7).has_value());
}
