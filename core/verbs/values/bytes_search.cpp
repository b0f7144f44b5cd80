#include "core/verbs/values/bytes_search.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>
#include <system_error>

#include "core/base/parse_text.h"
#include "core/tensor/cast.h"

namespace shw::verbs {
namespace {

constexpr std::uint64_t kBlock = std::uint64_t{1} << 20;
constexpr std::size_t kMaxPattern = 4096;

tl::unexpected<Error> bad_pattern_error(std::string why) {
  return fail(ErrorKind::kUsage, std::move(why), {},
              "Type \"text\", /50 4b 03 for bytes, or =1.5 for a number.");
}

Result<Bytes> parse_hex_bytes(std::string_view text) {
  Bytes bytes;
  std::string digits;
  for (char c : text) {
    if (c == ' ' || c == ',') continue;
    digits += c;
    if (digits.size() < 2) continue;
    unsigned byte = 0;
    auto [end, code] = std::from_chars(digits.data(), digits.data() + 2, byte, 16);
    if (code != std::errc{} || end != digits.data() + 2) break;
    bytes.push_back(static_cast<std::byte>(byte));
    digits.clear();
  }
  if (!digits.empty() || bytes.empty())
    return bad_pattern_error("hexadecimal bytes have two digits each: 50 4b 03");
  return bytes;
}

template <class Integer>
std::optional<Bytes> integer_bytes(std::string_view text) {
  const auto value = parse_number<Integer>(text);
  if (!value) return std::nullopt;
  Bytes bytes(sizeof(Integer));
  std::memcpy(bytes.data(), &*value, sizeof(Integer));
  return bytes;
}

std::optional<Bytes> bytes_of_integer(Dtype dtype, std::string_view text) {
  switch (dtype) {
    case Dtype::kInt8:
      return integer_bytes<std::int8_t>(text);
    case Dtype::kInt16:
      return integer_bytes<std::int16_t>(text);
    case Dtype::kInt32:
      return integer_bytes<std::int32_t>(text);
    case Dtype::kInt64:
      return integer_bytes<std::int64_t>(text);
    case Dtype::kUint8:
      return integer_bytes<std::uint8_t>(text);
    case Dtype::kUint16:
      return integer_bytes<std::uint16_t>(text);
    case Dtype::kUint32:
      return integer_bytes<std::uint32_t>(text);
    case Dtype::kUint64:
      return integer_bytes<std::uint64_t>(text);
    default:
      return std::nullopt;
  }
}

Result<Bytes> bytes_of_number(Dtype dtype, std::string_view text) {
  if (auto bytes = bytes_of_integer(dtype, text)) return *bytes;
  const auto value = parse_number<double>(text);
  if (!value || !can_cast(Dtype::kFloat64, dtype) || *value != *value)
    return bad_pattern_error("no element of " + std::string(name(dtype)) + " is \"" +
                             std::string(text) + "\"");
  Bytes number(sizeof(double));
  std::memcpy(number.data(), &*value, sizeof(double));
  return cast_elements(Dtype::kFloat64, number, dtype);
}

std::string_view as_text(BytesView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The first place in [from, to) where the pattern begins.
Result<std::optional<std::uint64_t>> find_between(const ByteSource& source,
                                                  const BytePattern& pattern, std::uint64_t from,
                                                  std::uint64_t to, Progress* progress) {
  const std::uint64_t length = pattern.bytes.size();
  const std::string_view wanted = as_text(pattern.bytes);
  for (std::uint64_t at = from; at < to && length <= source.size() - at; at += kBlock) {
    if (is_cancelled(progress)) return cancelled_error();
    // A pattern may go on in the next block.
    const std::uint64_t room = std::min(source.size() - at, kBlock + length - 1);
    SHW_TRY(const Bytes block, read_bytes(source, at, room));
    if (progress != nullptr) progress->add(std::min(room, kBlock));
    const std::string_view text = as_text(block);
    for (std::size_t in = text.find(wanted); in != text.npos; in = text.find(wanted, in + 1)) {
      const std::uint64_t place = at + in;
      if (place >= to) break;
      const std::uint64_t away =
          place >= pattern.first ? place - pattern.first : pattern.first - place;
      if (away % pattern.step == 0) return std::optional(place);
    }
  }
  return std::optional<std::uint64_t>();
}

}  // namespace

bool is_byte_pattern(std::string_view text) {
  return text.starts_with('"') || text.starts_with('/') || text.starts_with('=');
}

Result<BytePattern> parse_byte_pattern(std::string_view text, const BytesWindow& window) {
  BytePattern pattern;
  if (text.size() > kMaxPattern)
    return bad_pattern_error("the search text may have at most 4,096 characters");
  if (text.starts_with('"')) {
    text.remove_prefix(1);
    if (text.ends_with('"')) text.remove_suffix(1);
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    pattern.bytes.assign(bytes.begin(), bytes.end());
    if (pattern.bytes.empty()) return bad_pattern_error("there is no text between the quotes");
    return pattern;
  }
  if (text.starts_with('/')) {
    SHW_TRY(pattern.bytes, parse_hex_bytes(text.substr(1)));
    return pattern;
  }
  if (!text.starts_with('='))
    return bad_pattern_error("\"" + std::string(text) + "\" is not a pattern");
  if (window.dtype == Dtype::kUnknown || window.values_first == window.values_last)
    return bad_pattern_error("to search for a number, show a tensor first");
  SHW_TRY(pattern.bytes, bytes_of_number(window.dtype, text.substr(1)));
  if (window.big_endian) std::ranges::reverse(pattern.bytes);
  pattern.first = window.values_first;
  pattern.step = std::max<std::size_t>(1, size_of(window.dtype));
  return pattern;
}

Result<std::optional<std::uint64_t>> find_bytes(const ByteSource& source,
                                                const BytePattern& pattern, std::uint64_t from,
                                                Progress* progress) {
  from = std::min(from, source.size());
  if (progress != nullptr) progress->begin(Phase::kReadingBytes, source.size(), true);
  SHW_TRY(auto place, find_between(source, pattern, from, source.size(), progress));
  if (place) return place;
  return find_between(source, pattern, 0, from, progress);
}

Result<BytesWindow> bytes_found(const Checkpoint& checkpoint, const BytesWindow& now,
                                std::string_view text, Progress* progress) {
  auto missing = [&](const std::string& why) {
    BytesWindow window = now;
    window.wrong.push_back(why);
    return window;
  };
  auto pattern = parse_byte_pattern(text, now);
  if (!pattern) return missing(pattern.error().message);
  SHW_TRY(auto source, checkpoint.directory()->open(now.path));
  SHW_TRY(const auto place, find_bytes(*source, *pattern, now.at + 1, progress));
  if (!place) return missing(std::string(text) + " does not occur in this file");
  return bytes_at(checkpoint, now.path, *place, std::nullopt, progress);
}

}  // namespace shw::verbs
