#include "core/formats/hdf5/hdf5_checksum.h"

#include <bit>

namespace shw {
namespace {

// State of Bob Jenkins' lookup3: 12 bytes at a time as three words, padded with zeros.
struct Lookup3 {
  std::uint32_t a, b, c;

  void add(BytesView bytes) {
    std::uint32_t words[3] = {};
    for (std::size_t i = 0; i < bytes.size(); ++i)
      words[i / 4] += std::to_integer<std::uint32_t>(bytes[i]) << (i % 4 * 8);
    a += words[0];
    b += words[1];
    c += words[2];
  }
  void mix() {
    a = (a - c) ^ std::rotl(c, 4);
    c += b;
    b = (b - a) ^ std::rotl(a, 6);
    a += c;
    c = (c - b) ^ std::rotl(b, 8);
    b += a;
    a = (a - c) ^ std::rotl(c, 16);
    c += b;
    b = (b - a) ^ std::rotl(a, 19);
    a += c;
    c = (c - b) ^ std::rotl(b, 4);
    b += a;
  }
  void finish() {
    c = (c ^ b) - std::rotl(b, 14);
    a = (a ^ c) - std::rotl(c, 11);
    b = (b ^ a) - std::rotl(a, 25);
    c = (c ^ b) - std::rotl(b, 16);
    a = (a ^ c) - std::rotl(c, 4);
    b = (b ^ a) - std::rotl(a, 14);
    c = (c ^ b) - std::rotl(b, 24);
  }
};

}  // namespace

std::uint32_t hdf5_checksum(BytesView bytes) {
  const std::uint32_t start = 0xdeadbeef + static_cast<std::uint32_t>(bytes.size());
  Lookup3 hash{start, start, start};
  if (bytes.empty()) return hash.c;
  for (; bytes.size() > 12; bytes = bytes.subspan(12)) {
    hash.add(bytes.first(12));
    hash.mix();
  }
  hash.add(bytes);
  hash.finish();
  return hash.c;
}

}  // namespace shw
