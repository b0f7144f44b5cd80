// The names of all tensors in lower case, for what is typed letter by letter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/letter_case.h"
#include "core/model/checkpoint.h"

namespace shw {

// A bit for each letter and digit, and a few for the rest, of all characters, case ignored.
std::uint64_t signs_of(std::string_view text);

// Every name in lower case, one after the other: a word is looked for in all of them at once,
// 250,000 names are one text of 12 MB and not as many places in memory.
struct FoldedNames {
  std::string text;
  std::vector<std::size_t> begin;     // of each, and where the last one ends
  std::vector<std::uint16_t> shared;  // of each: with how many characters the one before begins too
  std::vector<std::uint64_t> signs;   // of each: which characters it holds, some of them together
  std::string_view of(std::uint32_t tensor) const {
    return std::string_view(text).substr(begin[tensor], begin[tensor + 1] - begin[tensor] - 1);
  }
  // So many characters, or more, begin the name of the second and that of the first before it.
  std::size_t shared_front(std::uint32_t first, std::uint32_t second) const;
};
FoldedNames fold_names(const Checkpoint& checkpoint);

// The tensors whose name has the word, which is in lower case: by one look through the text.
std::vector<std::uint32_t> names_with(const FoldedNames& names, const std::string& word);

}  // namespace shw
