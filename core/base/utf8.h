// Names that need not be text: POSIX lets a file be called by any bytes, and JSON takes UTF-8
// alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shw {

// The first letter of a text that is not empty, and how many bytes it takes: 0 where they are no
// UTF-8. A surrogate is a letter here.
struct Letter {
  std::uint32_t code = 0;
  std::size_t length = 0;
};
Letter first_letter(std::string_view text);
inline bool is_surrogate(std::uint32_t code) {
  return code >= 0xD800 && code < 0xE000;
}

// As Unicode 15 and Python have it: nothing overlong, no surrogates, at most U+10FFFF.
bool is_utf8(std::string_view text);
// What Python's unpickler takes for a string: UTF-8 in which surrogates may stand alone.
bool is_pickled_text(std::string_view text);

// A relative path or another name as text, two of them never as the same: itself where it is UTF-8,
// else "//" and every byte that is no ASCII letter, digit or sign as \xHH. No relative path begins
// with "//"; a name that does is written so too.
std::string text_of_name(std::string_view name);
// The name again. Text that text_of_name() did not make is itself.
std::string name_of_text(std::string_view text);

// A path as Python has it (os.fsdecode), which pickles it so: every byte that is no UTF-8 as one of
// the surrogates U+DC80 to U+DCFF.
std::string pickled_path(std::string_view path);

}  // namespace shw
