#include "core/formats/common/packed_text.h"

#include <zstd.h>

#include <array>
#include <memory>

namespace shw {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
// This level is as fast as reading; higher levels take minutes for a plan of a million chunks.
constexpr int kLevel = 3;

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? kDigits[bits >> (18 - 6 * k) & 63u] : '=';
  }
  return text;
}

constexpr std::array<std::int8_t, 256> values_of_digits() {
  std::array<std::int8_t, 256> values{};
  for (auto& value : values) value = -1;
  for (std::size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::int8_t>(i);
  return values;
}

Result<std::string> from_base64(std::string_view text) {
  static constexpr auto kValues = values_of_digits();
  auto damaged = [] { return fail(ErrorKind::kDamaged, "is not base64"); };
  if (text.size() % 4 != 0) return damaged();
  std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      bool is_padding = i + k >= text.size() - padding;
      int value = is_padding ? 0 : kValues[static_cast<unsigned char>(text[i + k])];
      if (value < 0) return damaged();
      bits = bits << 6 | static_cast<std::uint32_t>(value);
    }
    for (std::size_t k = 0; k < 3; ++k) bytes += static_cast<char>(bits >> (16 - 8 * k) & 0xFFu);
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace

std::string packed_text(std::string_view text) {
  // Uninitialised: clearing a buffer for millions of chunks would take a tenth of the time.
  const std::size_t room = ZSTD_compressBound(text.size());
  const auto packed = std::make_unique_for_overwrite<char[]>(room);
  const std::size_t length = ZSTD_compress(packed.get(), room, text.data(), text.size(), kLevel);
  // With a buffer of this size only allocation can fail.
  if (ZSTD_isError(length) != 0) return std::string();
  return to_base64({packed.get(), length});
}

Result<std::string> unpacked_text(std::string_view packed, std::uint64_t limit) {
  SHW_TRY(std::string bytes, from_base64(packed));
  auto size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
    return fail(ErrorKind::kDamaged, "is not compressed text");
  // Exactly one frame: further frames would only circumvent the limit.
  if (ZSTD_findFrameCompressedSize(bytes.data(), bytes.size()) != bytes.size())
    return fail(ErrorKind::kDamaged, "holds more than one compressed text");
  if (size > limit) return fail(ErrorKind::kUnsupported, "is too long");
  std::string text(static_cast<std::size_t>(size), '\0');
  std::size_t length = ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(length) != 0 || length != text.size())
    return fail(ErrorKind::kDamaged, "is not compressed text");
  return text;
}

}  // namespace shw
