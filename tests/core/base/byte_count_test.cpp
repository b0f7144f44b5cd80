#include "core/base/byte_count.h"

#include <doctest/doctest.h>

using shw::parse_bytes;

TEST_CASE("numbers of bytes are read with a suffix or without, and nothing else is") {
  CHECK(parse_bytes("0") == 0);
  CHECK(parse_bytes("1048576") == 1048576);
  CHECK(parse_bytes("256M") == 256ull << 20);
  CHECK(parse_bytes("4g") == 4ull << 30);
  CHECK(parse_bytes("3K") == 3072);
  CHECK(parse_bytes("1T") == 1ull << 40);
  for (const char* text : {"", "M", "-1", "+1", " 1", "1 M", "1MB", "1.5G", "0x10", "1e9",
                           "18446744073709551616", "17179869184T", "16777216T"})
    CHECK_FALSE(parse_bytes(text).has_value());
}
