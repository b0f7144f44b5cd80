// All tensor names in lower case, for incremental search.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/letter_case.h"
#include "core/model/checkpoint.h"

namespace shw {

// A bit set of the letters, digits and groups of other characters in a text, ignoring case.
std::uint64_t character_set_mask(std::string_view text);

// All names in one text: a word is searched in 250,000 names as one text of 12 MB, which is faster
// than in separate strings.
struct FoldedNames {
  std::string text;
  std::vector<std::size_t> begin;     // begin of each name, plus the end
  std::vector<std::uint16_t> shared;  // length of the prefix shared with the previous name
  std::vector<std::uint64_t> signs;   // character_set_mask() of each name
  std::string_view of(std::uint32_t tensor) const {
    return std::string_view(text).substr(begin[tensor], begin[tensor + 1] - begin[tensor] - 1);
  }
  // Length of the prefix shared by two names.
  std::size_t common_prefix_length(std::uint32_t first, std::uint32_t second) const;
};
FoldedNames fold_names(const Checkpoint& checkpoint);

// Tensors whose names contain the lower-case word, with one pass over the text.
std::vector<std::uint32_t> tensors_with_word(const FoldedNames& names, const std::string& word);

}  // namespace shw
