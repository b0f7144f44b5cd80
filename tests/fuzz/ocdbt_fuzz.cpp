// An OCDBT database of arbitrary bytes: half of them are the body of its manifest, half that of a
// node. Headers and checksums are made valid, because readers would stop at them.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/formats/common/crc32c.h"
#include "core/formats/orbax/ocdbt.h"

using namespace shw;

namespace {

Bytes framed(std::uint32_t magic, BytesView body) {
  Bytes out;
  for (int shift = 24; shift >= 0; shift -= 8)
    out.push_back(static_cast<std::byte>(magic >> shift));
  const std::uint64_t length = 14 + body.size() + 4;
  for (int shift = 0; shift < 64; shift += 8)
    out.push_back(static_cast<std::byte>(length >> shift & 0xFF));
  out.resize(14);
  out.insert(out.end(), body.begin(), body.end());
  const std::uint32_t crc = crc32c_of(out);
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<std::byte>(crc >> shift));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto view = std::as_bytes(std::span(data, size));
  const std::size_t half = size / 2;
  (void)read_ocdbt(
      *memory_directory("fuzz", {{"manifest.ocdbt", framed(0x0CDB3A2A, view.first(half))},
                                 {"d/0", framed(0x0CDB20DE, view.subspan(half))}}),
      nullptr);
  return 0;
}
