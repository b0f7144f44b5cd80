#include "core/formats/npz/npy_header.h"

#include <algorithm>
#include <string_view>

#include "core/base/little_endian.h"

namespace shw {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

tl::unexpected<Error> damaged_npy_error(std::string what) {
  return fail(ErrorKind::kDamaged, std::move(what));
}

// The text after a key of the dictionary.
std::string_view value_of(std::string_view text, std::string_view key) {
  for (char quote : {'\'', '"'}) {
    const std::string quoted = quote + std::string(key) + quote;
    const std::size_t at = text.find(quoted);
    if (at == std::string_view::npos) continue;
    text.remove_prefix(at + quoted.size());
    const std::size_t first = text.find_first_not_of(" :");
    return first == std::string_view::npos ? std::string_view() : text.substr(first);
  }
  return {};
}

std::string quoted_text(std::string_view text) {
  if (text.empty() || (text.front() != '\'' && text.front() != '"')) return {};
  const std::size_t end = text.find(text.front(), 1);
  return end == std::string_view::npos ? std::string() : std::string(text.substr(1, end - 1));
}

// Parses "(3, 4)", "(3,)", "()".
std::optional<Extents> shape_in(std::string_view text) {
  if (!text.starts_with('(')) return std::nullopt;
  Extents shape;
  std::int64_t value = -1;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c >= '0' && c <= '9') {
      if (value > (std::int64_t{1} << 58)) return std::nullopt;
      value = std::max<std::int64_t>(value, 0) * 10 + (c - '0');
      continue;
    }
    if (value >= 0 && (c == ',' || c == ')')) {
      shape.push_back(value);
      value = -1;
    }
    if (c == ')') return shape.size() <= 64 ? std::optional(shape) : std::nullopt;
    if (c != ',' && c != ' ' && c != 'L') return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

bool begins_as_npy(BytesView bytes) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())
      .starts_with(kNpyMagic);
}

Result<NpyHeader> parse_npy_header(BytesView bytes) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!all.starts_with(kNpyMagic) || all.size() < 12)
    return damaged_npy_error("is not a .npy file: wrong first bytes");
  const unsigned version = std::to_integer<unsigned>(bytes[6]);
  if (version < 1 || version > 3) return damaged_npy_error("has an unknown .npy version");
  const std::size_t begin = version == 1 ? 10 : 12;
  const std::uint64_t length =
      version == 1 ? load_little<std::uint16_t>(bytes, 8) : load_little<std::uint32_t>(bytes, 8);
  if (length > all.size() - begin) return damaged_npy_error("has a truncated header");
  const std::string_view text = all.substr(begin, static_cast<std::size_t>(length));
  NpyHeader header;
  header.length = begin + length;
  header.descr = quoted_text(value_of(text, "descr"));
  const std::string_view order = value_of(text, "fortran_order");
  auto shape = shape_in(value_of(text, "shape"));
  if (!shape || (!order.starts_with("True") && !order.starts_with("False")))
    return damaged_npy_error("has a header that is not a .npy dictionary");
  header.is_column_major = order.starts_with("True");
  header.shape = std::move(*shape);
  return header;
}

}  // namespace shw
