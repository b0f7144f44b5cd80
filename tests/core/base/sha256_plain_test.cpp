#include "core/base/sha256_plain.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

using namespace shw;

namespace {

std::string sha256_of(std::string_view text, std::size_t piece) {
  PlainSha256 hash;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const std::string_view part = text.substr(at, piece);
    hash.add(std::as_bytes(std::span(part.data(), part.size())));
  }
  std::string hex;
  for (std::uint8_t byte : hash.digest()) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

}  // namespace

// Expected values of NIST (FIPS 180-4) and of sha256sum.
TEST_CASE("sha256: plain C++ gives the standard's answers, in pieces of any size") {
  CHECK(sha256_of("", 1) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_of("abc", 2) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string million(1'000'000, 'a');
  for (std::size_t piece : {1, 55, 63, 64, 65, 1000, 1'000'000}) {
    CAPTURE(piece);
    CHECK(sha256_of(million, piece) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

TEST_CASE("sha256: the padding is right wherever a block ends") {
  // printf 'x%.0s' $(seq N) | sha256sum
  CHECK(sha256_of(std::string(55, 'x'), 7) ==
        "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  CHECK(sha256_of(std::string(56, 'x'), 7) ==
        "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  CHECK(sha256_of(std::string(64, 'x'), 7) ==
        "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
}
