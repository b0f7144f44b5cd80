// UTF-8 checks, and a text form for names that are not UTF-8: POSIX file names may hold any bytes,
// JSON text must be UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shw {

// The first code point of a non-empty text and its length in bytes; the length is 0 if the bytes
// are not UTF-8. Surrogates count as code points here.
struct CodePoint {
  std::uint32_t code = 0;
  std::size_t length = 0;
};
CodePoint decode_code_point(std::string_view text);
inline bool is_surrogate(std::uint32_t code) {
  return code >= 0xD800 && code < 0xE000;
}

// As in Unicode 15 and Python: no overlong forms, no surrogates, at most U+10FFFF.
bool is_utf8(std::string_view text);
// The strings that Python's unpickler accepts: UTF-8 in which lone surrogates are allowed.
bool is_utf8_or_surrogates(std::string_view text);

// An injective text form of a path or name: the name itself if it is UTF-8, else "//" and every
// byte that is not an ASCII letter, digit or sign as \xHH. Relative paths never begin with "//"; a
// name that does is escaped too.
std::string escape_name(std::string_view name);
// Inverse of escape_name(); other text is returned unchanged.
std::string unescape_name(std::string_view text);

// A path as Python decodes and pickles it (os.fsdecode): every byte that is not UTF-8 becomes one
// of the surrogates U+DC80 to U+DCFF.
std::string python_path_text(std::string_view path);

}  // namespace shw
