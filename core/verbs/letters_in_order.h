// "~l3dp" finds layers.3.mlp.down_proj.weight.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/verbs/folded_names.h"

namespace shw {

// Every letter begins a part of the name ("layers", "3", "down") or stands behind the one before.
// All ways to read a name are followed at once, a bit for each letter that was found.
class LettersInOrder {
 public:
  explicit LettersInOrder(std::string_view letters);
  enum class Kind : std::uint8_t { kOther, kLetter, kDigit };
  // What is known of a name behind some of its characters.
  struct Seen {
    std::uint64_t anywhere = 0, here = 0;
    Kind before = Kind::kOther;
  };
  // Reads one more; whether all letters are found.
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
  // Of a character: what it is, and which of the letters.
  struct Sign {
    Kind kind = Kind::kOther;
    std::uint64_t places = 0;
  };
  std::uint64_t all_;
  std::array<Sign, 256> signs_{};
};

// The same of one name after the other. A name that lacks one of them is not read. Neighbours begin
// alike ("model.layers.17.experts.3."), so it goes on where a name leaves the one read before.
class LettersInNames {
 public:
  LettersInNames(std::string_view letters, const FoldedNames& names)
      : letters_(letters), signs_(signs_of(letters)), names_(names), seen_(1) {}
  bool in(std::uint32_t tensor);

 private:
  LettersInOrder letters_;
  std::uint64_t signs_;
  const FoldedNames& names_;
  std::uint32_t last_ = 0;
  std::size_t read_ = 0;                    // characters of the last one
  bool found_ = false;                      // all letters, in them
  std::vector<LettersInOrder::Seen> seen_;  // behind each of them
};

// Case ignored.
bool has_letters_in_order(std::string_view name, std::string_view letters);

}  // namespace shw
