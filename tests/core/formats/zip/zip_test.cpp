#include "core/formats/zip/zip.h"

#include <doctest/doctest.h>

#include "core/base/little_endian.h"
#include "core/make_zip.h"

using namespace shw;
using namespace shw::test;

namespace {

// make_zip() with zip64 records before its end record, which precedes `comment`.
std::string with_zip64(const std::string& zip, std::size_t comment, std::uint32_t disks) {
  const std::size_t end = zip.size() - comment - 22;
  const Bytes fields = to_bytes(std::string_view(zip).substr(end, 22));
  const std::uint64_t count = load_little<std::uint16_t>(fields, 10),
                      length = load_little<std::uint32_t>(fields, 12),
                      begin = load_little<std::uint32_t>(fields, 16);
  const std::string wide = "PK\6\6" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) +
                           little(count, 8) + little(count, 8) + little(length, 8) +
                           little(begin, 8);
  const std::string locator = "PK\6\7" + little(0, 4) + little(end, 8) + little(disks, 4);
  return zip.substr(0, end) + wide + locator + zip.substr(end);
}

}  // namespace

TEST_CASE("the records of zip64 are read wherever a comment puts them") {
  for (std::size_t length : {0u, 100u, 5'000u, 17'000u, 65'000u}) {
    CAPTURE(length);
    const std::string comment(length, 'c');
    const std::string zip = make_zip({{"archive/data.pkl", std::string(9'000, 'p')}}, comment);
    for (std::uint32_t disks : {1u, 2u}) {
      const std::string wide = with_zip64(zip, length, disks);
      auto source = memory_source("item", to_bytes(wide));
      auto read = ZipReader::open(source, 0, source->size());
      CHECK(read.has_value() == (disks == 1));
      if (read) CHECK(read->entries().size() == 1);
      if (!read) CHECK(read.error().message.find("several disks") != std::string::npos);
    }
  }
}

// torch 2.15 loads a torch.save file followed by up to 69,562 arbitrary bytes (tests/interop checks
// it): its search for the end record reaches 69,584 bytes back. This reproduces its windows; a
// window that would begin before the file ends the search.
bool torch_finds(std::int64_t length, std::int64_t end) {
  std::int64_t at = std::max<std::int64_t>(length - 4096, 0);
  while (end < at) {
    if (at == 0 || length - at >= 65'557 || at < 4093) return false;
    at -= 4093;
  }
  return true;
}

TEST_CASE("behind a small archive some lengths hide its end and longer ones do not") {
  const std::string zip = make_zip({{"archive/data.pkl", std::string(1'400, 'p')}}, "");
  int found = 0, hidden = 0;
  for (std::size_t more = 0; more < 75'000; more += 487) {
    CAPTURE(more);
    auto source = memory_source("item", to_bytes(zip + std::string(more, '\0')));
    const bool is_found = torch_finds(static_cast<std::int64_t>(source->size()),
                                      static_cast<std::int64_t>(zip.size()) - 22);
    CHECK(ZipReader::open(source, 0, source->size()).has_value() == is_found);
    ++(is_found ? found : hidden);
  }
  CHECK(found > 20);
  CHECK(hidden > 20);
}

TEST_CASE("bytes after an archive hide its end only where torch does not find it either") {
  const std::string zip = make_zip({{"archive/data.pkl", std::string(90'000, 'p')}}, "");
  for (bool is_wide : {false, true}) {
    const std::string archive = is_wide ? with_zip64(zip, 0, 1) : zip;
    for (std::size_t more : {0u, 1u, 21u, 22u, 5'000u, 65'536u, 69'562u, 69'563u, 80'000u}) {
      CAPTURE(more);
      auto source = memory_source("item", to_bytes(archive + std::string(more, '\0')));
      auto read = ZipReader::open(source, 0, source->size());
      CHECK(read.has_value() == (more <= 69'562));
      if (!read) continue;
      REQUIRE(read->entries().size() == 1);
      auto crc = read->crc_of(read->entries()[0], nullptr);
      REQUIRE(crc.has_value());
      CHECK(*crc == read->entries()[0].crc);
    }
  }
}

TEST_CASE("of two end records the last one counts") {
  const std::string one = make_zip({{"archive/data.pkl", "one"}}, "");
  auto source = memory_source("item", to_bytes(one + "PK\5\6" + std::string(18, '\0') + "xx"));
  CHECK_FALSE(ZipReader::open(source, 0, source->size()).has_value());
  source = memory_source("item", to_bytes(one + "PK\5\6" + std::string(17, '\0')));
  CHECK(ZipReader::open(source, 0, source->size()).has_value());  // too few bytes for a record
}
