// Looks for bytes in a file:
//   "text"      the bytes of the text
//   /50 4b 03   hexadecimal bytes
//   =1.5        a number, as the elements that are shown store it
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/source.h"
#include "core/verbs/values/bytes_window.h"

namespace shw::verbs {

// True if the text is one of the three forms; anything else is an offset.
bool is_byte_pattern(std::string_view text);

struct BytePattern {
  Bytes bytes;
  // A number is found only at `first` and whole steps from there; a step of 1: anywhere.
  std::uint64_t first = 0, step = 1;
};
// kUsage with a reason if the text is not a pattern, or the window has no elements of a dtype.
Result<BytePattern> parse_byte_pattern(std::string_view text, const BytesWindow& window);

// The first place at or behind `from`, else from the beginning on; nullopt if there is none.
Result<std::optional<std::uint64_t>> find_bytes(const ByteSource& source,
                                                const BytePattern& pattern, std::uint64_t from,
                                                Progress* progress);

// The window at the next match after `now.at`; without a match, `now` with a note.
Result<BytesWindow> bytes_found(const Checkpoint& checkpoint, const BytesWindow& now,
                                std::string_view text, Progress* progress);

}  // namespace shw::verbs
