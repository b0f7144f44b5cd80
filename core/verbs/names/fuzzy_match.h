// Search by initial letters: "~l3dp" finds layers.3.mlp.down_proj.weight.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/verbs/names/folded_names.h"

namespace shw {

// Every letter begins a part of the name ("layers", "3", "down") or follows the previous match. All
// alternatives are tracked together, with one bit per matched letter.
class FuzzyMatcher {
 public:
  explicit FuzzyMatcher(std::string_view letters);
  enum class Kind : std::uint8_t { kOther, kLetter, kDigit };
  // State after a prefix of a name.
  struct Seen {
    std::uint64_t anywhere = 0, here = 0;
    Kind before = Kind::kOther;
  };
  // Advances by one character; true if all letters have matched.
  bool read(char c, Seen& seen) const {
    const Sign& sign = signs_[static_cast<unsigned char>(c)];
    bool begins = sign.kind != seen.before || sign.kind == Kind::kOther;
    seen.here = ((begins ? seen.anywhere : seen.here) << 1 | (begins ? 1u : 0u)) & sign.places;
    seen.anywhere |= seen.here;
    seen.before = sign.kind;
    return (seen.here & all_) != 0;
  }
  bool in(std::string_view name) const {
    Seen seen;
    return std::any_of(name.begin(), name.end(), [&](char c) { return read(c, seen); });
  }

 private:
  static constexpr std::size_t kMost = 64;
  // Class of a character, and the letters that it matches.
  struct Sign {
    Kind kind = Kind::kOther;
    std::uint64_t places = 0;
  };
  std::uint64_t all_;
  std::array<Sign, 256> signs_{};
};

// Matches many names: names without a required letter are skipped, and matching resumes at the
// prefix shared with the previous name ("model.layers.17.experts.3.").
class LettersInNames {
 public:
  LettersInNames(std::string_view letters, const FoldedNames& names)
      : letters_(letters), signs_(character_set_mask(letters)), names_(names), seen_(1) {}
  bool in(std::uint32_t tensor);

 private:
  FuzzyMatcher letters_;
  std::uint64_t signs_;
  const FoldedNames& names_;
  std::uint32_t last_ = 0;
  std::size_t read_ = 0;                  // length of the last name read
  bool found_ = false;                    // all letters matched within it
  std::vector<FuzzyMatcher::Seen> seen_;  // state after each of its characters
};

// Case-insensitive.
bool has_letters_in_order(std::string_view name, std::string_view letters);

}  // namespace shw
