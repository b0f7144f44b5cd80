#include "core/formats/items/item_headers.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "core/base/parallel.h"

using namespace shw;

namespace {

template <class T>
void check_same(const Result<T>& kept, const Result<T>& told, auto parts) {
  REQUIRE(kept.has_value() == told.has_value());
  if (!told) {
    CHECK(kept.error().kind == told.error().kind);
    CHECK(kept.error().message == told.error().message);
    CHECK(kept.error().place.offset == told.error().place.offset);
    return;
  }
  CHECK(parts(*kept) == parts(*told));
}

// Headers of few kinds, as in a checkpoint, with every field varied in some of them.
Result<ItemHeader> random_header(std::mt19937& random) {
  if (random() % 16 == 0)
    return fail(ErrorKind::kDamaged, "no archive", {"__0_0.distcp", random() % 1000});
  ItemHeader header;
  header.dtype = random() % 2 == 0 ? Dtype::kFloat32 : Dtype::kBfloat16;
  header.sizes = {static_cast<std::int64_t>(random() % 3), 4};
  header.strides = random() % 4 == 0 ? Extents{1, 2} : Extents{4, 1};
  header.storage_offset = static_cast<std::int64_t>(random() % 2);
  header.payload_offset = random();
  header.payload_length = random() % 3;
  if (random() % 3 != 0) header.payload_crc = static_cast<std::uint32_t>(random() % 2);
  header.big_endian = random() % 8 == 0;
  header.conjugate = random() % 8 == 0;
  header.negative = random() % 8 == 0;
  header.compressed = random() % 8 == 0;
  return header;
}

Result<DataCheck> random_check(std::mt19937& random) {
  if (random() % 16 == 0)
    return fail(ErrorKind::kIo, "the disk fails", {"__1_0.distcp", random() % 1000});
  DataCheck check;
  check.crc = static_cast<DataCheck::Crc>(random() % 3);
  check.expected = static_cast<std::uint32_t>(random() % 3);
  check.actual = random() % 2 == 0 ? check.expected : static_cast<std::uint32_t>(random() % 3);
  if (check.crc == DataCheck::Crc::kDiffers) {
    check.record = random() % 2 == 0 ? "archive/data/0" : "archive/data.pkl";
    check.record_offset = random() % 100;
    check.record_length = random() % 100;
  }
  if (random() % 2 == 0) {
    check.floats = FloatCounts{4, static_cast<std::int64_t>(random() % 2), 0,
                               static_cast<std::int64_t>(random() % 2), 0};
  }
  return check;
}

// The results of a builder that all threads fill at once.
template <class Builder, class T>
typename Builder::Results kept_of(const std::vector<Result<T>>& told) {
  Builder builder(told.size());
  parallel_for_ranges(told.size(), 1, [&](std::size_t i, std::size_t) { builder.set(i, told[i]); });
  return builder.take();
}

}  // namespace

TEST_CASE("headers that share what is the same come back as they were set") {
  std::mt19937 random(1);
  std::vector<Result<ItemHeader>> told;
  for (int i = 0; i < 5000; ++i) told.push_back(random_header(random));
  const ItemHeaders kept = kept_of<ItemHeadersBuilder>(told);
  REQUIRE(kept.size() == told.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    CHECK(kept.has_value(i) == told[i].has_value());
    check_same(kept[i], told[i],
               [](const ItemHeader& of) { return std::tuple(ItemHeaderParts::all_of(of)); });
  }
}

TEST_CASE("checks of bytes that share what is the same come back as they were set") {
  std::mt19937 random(2);
  std::vector<Result<DataCheck>> told;
  for (int i = 0; i < 5000; ++i) told.push_back(random_check(random));
  const ItemDataChecks kept = kept_of<ItemDataChecksBuilder>(told);
  REQUIRE(kept.size() == told.size());
  for (std::size_t i = 0; i < told.size(); ++i)
    check_same(kept[i], told[i], DataCheckParts::all_of);
}

TEST_CASE("a checkpoint whose items nobody read has no results of them") {
  const ItemHeaders none;
  CHECK(none.empty());
  const ItemHeaders unset = ItemHeadersBuilder(2).take();
  REQUIRE(unset.size() == 2);
  CHECK(unset[1].has_value());
  CHECK(unset[1]->dtype == Dtype::kUnknown);
}
