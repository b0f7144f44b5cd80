#include "core/formats/common/archive_header_cache.h"

#include <doctest/doctest.h>

#include "core/formats/common/torch_item_write.h"
#include "core/memory_sink.h"

using namespace shw;

namespace {

// A comparable text of the header that either reader returns.
std::string in_words(const Result<ItemHeader>& read) {
  if (!read) return "refused: " + read.error().message;
  const ItemHeader& header = *read;
  std::string text(name(header.dtype));
  text += to_text(header.sizes) + to_text(header.strides);
  for (std::uint64_t number :
       {static_cast<std::uint64_t>(header.storage_offset), header.payload_offset,
        header.payload_length, std::uint64_t{header.payload_crc.value_or(7)},
        std::uint64_t{header.payload_crc.has_value()}, std::uint64_t{header.big_endian},
        std::uint64_t{header.conjugate}, std::uint64_t{header.negative},
        std::uint64_t{header.compressed}})
    text += " " + std::to_string(number);
  return text;
}

// The slow way: reads all of it.
Result<ItemHeader> read_slowly(const Bytes& file, std::uint64_t base, std::uint64_t length) {
  SHW_TRY(TorchItem item, open_torch_item(memory_source("item", file), base, length));
  return std::move(item.header);
}

Result<std::optional<ItemHeader>> find(const ArchiveHeaderCache& forms, const Bytes& file,
                                       std::uint64_t base, std::uint64_t length) {
  ZipEnds ends;
  return forms.find(*memory_source("item", file), base, length, ends);
}

struct Item {
  Bytes file;
  std::uint64_t base = 0, length = 0;
};

Item item_of(Dtype dtype, const Extents& sizes, std::uint8_t seed, std::uint64_t base) {
  Bytes payload(static_cast<std::size_t>(*volume(sizes)) * size_of(dtype));
  for (std::size_t i = 0; i < payload.size(); ++i)
    payload[i] = static_cast<std::byte>(i * 7 + seed);
  test::MemorySink sink;
  REQUIRE(sink.write(Bytes(base)).has_value());
  auto length = write_torch_item(sink, dtype, sizes, payload);
  REQUIRE(length.has_value());
  return {sink.bytes, base, *length};
}

void keep(ArchiveHeaderCache& forms, const Item& item) {
  auto opened = open_torch_item(memory_source("item", item.file), item.base, item.length);
  REQUIRE(opened.has_value());
  forms.keep(*opened);
}

}  // namespace

TEST_CASE("an archive like one before says what reading all of it says") {
  ArchiveHeaderCache forms;
  const std::vector<Extents> shapes = {Extents{},     Extents{0},      Extents{3},
                                       Extents{2, 4}, Extents{4, 2},   Extents{70, 70},
                                       Extents{300},  Extents{90'000}, Extents{1, 300, 1, 1, 1}};
  for (Dtype dtype : {Dtype::kFloat32, Dtype::kBfloat16, Dtype::kInt8}) {
    for (const Extents& sizes : shapes) {
      CAPTURE(to_text(sizes));
      const Item first = item_of(dtype, sizes, 1, 13), next = item_of(dtype, sizes, 99, 640);
      auto unknown = find(forms, next.file, next.base, next.length);
      REQUIRE(unknown.has_value());
      CHECK_FALSE(unknown->has_value());
      keep(forms, first);
      auto known = find(forms, next.file, next.base, next.length);
      REQUIRE(known.has_value());
      REQUIRE(known->has_value());
      CHECK(in_words(**known) == in_words(read_slowly(next.file, next.base, next.length)));
    }
  }
}

TEST_CASE("an archive that differs in any byte is not taken for one before") {
  for (const Extents& sizes : {Extents{0}, Extents{5}, Extents{70, 70}}) {
    const Item first = item_of(Dtype::kFloat32, sizes, 1, 0);
    ArchiveHeaderCache forms;
    keep(forms, first);
    std::size_t taken = 0, refused = 0;
    for (std::size_t at = 0; at < first.file.size(); ++at) {
      // The payload of the large file is uniform, so skipping it saves time.
      if (at > 1500 && at + 1500 < first.file.size()) continue;
      for (int bit : {0x01, 0x08, 0x80}) {
        Bytes damaged = first.file;
        damaged[at] ^= static_cast<std::byte>(bit);
        auto fast = find(forms, damaged, 0, damaged.size());
        REQUIRE(fast.has_value());
        if (!fast->has_value()) {
          ++refused;
          continue;
        }
        ++taken;
        CAPTURE(at);
        CHECK(in_words(**fast) == in_words(read_slowly(damaged, 0, damaged.size())));
      }
    }
    CHECK(taken > 0);
    CHECK(refused > 1000);
  }
}

TEST_CASE("what was read of an archive that is like none is not read again") {
  const Item first = item_of(Dtype::kFloat32, Extents{40, 400}, 1, 0);
  const Item other = item_of(Dtype::kFloat32, Extents{400, 40}, 1, 0);
  REQUIRE(first.length == other.length);
  ArchiveHeaderCache forms;
  keep(forms, first);
  ZipEnds ends;
  auto source = memory_source("item", other.file);
  auto found = forms.find(*source, 0, other.length, ends);
  REQUIRE(found.has_value());
  CHECK_FALSE(found->has_value());
  CHECK_FALSE(ends.tail.empty());
  auto opened = open_torch_item(source, 0, other.length, std::move(ends));
  REQUIRE(opened.has_value());
  CHECK(opened->header.sizes == Extents{400, 40});
}

TEST_CASE("an archive that is said to reach beyond its file is like none") {
  const Item first = item_of(Dtype::kFloat32, Extents{5}, 1, 0);
  ArchiveHeaderCache forms;
  keep(forms, first);
  auto found = find(forms, first.file, 1, first.length);
  REQUIRE(found.has_value());
  CHECK_FALSE(found->has_value());
}
