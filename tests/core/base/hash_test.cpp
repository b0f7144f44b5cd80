#include "core/base/hash.h"

#include <doctest/doctest.h>

#include <string_view>

using namespace shw;

namespace {
std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
}  // namespace

TEST_CASE("a hash is XXH3-128 in its canonical form however its bytes are cut") {
  // Output of xxhsum -H2 for an empty file.
  CHECK(to_hex(hash_of({})) == "99aa06d3014798d86001c324468d497f");
  RunningHash running;
  CHECK(running.text() == "99aa06d3014798d86001c324468d497f");
  running.add(bytes_of("Shard"));
  running.add({});
  running.add(bytes_of("wright"));
  CHECK(running.value() == hash_of(bytes_of("Shardwright")));
  CHECK_FALSE(running.value() == hash_of(bytes_of("Shardwrighs")));
  CHECK(to_hex(Hash128{0x0123456789abcdefu, 0xfu}) == "0123456789abcdef000000000000000f");
}

TEST_CASE("a SHA-256 is the one of the standard however its bytes are cut") {
  CHECK(RunningSha256().text() ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  RunningSha256 running;
  running.add(bytes_of("a"));
  running.add({});
  running.add(bytes_of("bc"));
  CHECK(running.text() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(running.text().empty());
}
