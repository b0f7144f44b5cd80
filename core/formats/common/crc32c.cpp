#include "core/formats/common/crc32c.h"

#include <array>

namespace shw {
namespace {

constexpr std::array<std::uint32_t, 256> crc32c_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = (value & 1) != 0 ? value >> 1 ^ 0x82F63B78u : value >> 1;
    table[i] = value;
  }
  return table;
}
constexpr auto kCrc32cTable = crc32c_table();

}  // namespace

std::uint32_t crc32c_of(BytesView bytes, std::uint32_t crc) {
  crc = ~crc;
  for (std::byte byte : bytes)
    crc = crc >> 8 ^ kCrc32cTable[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xFF];
  return ~crc;
}

}  // namespace shw
