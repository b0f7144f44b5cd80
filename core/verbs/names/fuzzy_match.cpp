#include "core/verbs/names/fuzzy_match.h"

#include <algorithm>

namespace shw {
namespace {

FuzzyMatcher::Kind kind_of(char c) {
  if (c >= '0' && c <= '9') return FuzzyMatcher::Kind::kDigit;
  bool letter = (c >= 'a' && c <= 'z') || static_cast<signed char>(c) < 0;
  return letter ? FuzzyMatcher::Kind::kLetter : FuzzyMatcher::Kind::kOther;
}

}  // namespace

FuzzyMatcher::FuzzyMatcher(std::string_view letters)
    : all_(std::uint64_t{1} << (std::min(letters.size(), kMost) - 1)) {
  for (std::size_t c = 0; c < signs_.size(); ++c) {
    Sign& sign = signs_[c];
    char folded = lower(static_cast<char>(c));
    sign.kind = kind_of(folded);
    for (std::size_t i = 0; i < std::min(letters.size(), kMost); ++i) {
      if (folded == lower(letters[i])) sign.places |= std::uint64_t{1} << i;
    }
  }
}

bool LettersInNames::in(std::uint32_t tensor) {
  if ((names_.signs[tensor] & signs_) != signs_) return false;
  std::size_t at = std::min(read_, names_.common_prefix_length(last_, tensor));
  last_ = tensor;
  if (found_ && at == read_) return true;
  std::string_view name = names_.of(tensor);
  if (seen_.size() <= name.size()) seen_.resize(name.size() + 1);
  FuzzyMatcher::Seen seen = seen_[at];
  for (found_ = false; at < name.size() && !found_; seen_[at] = seen)
    found_ = letters_.read(name[at++], seen);
  read_ = at;
  return found_;
}

bool has_letters_in_order(std::string_view name, std::string_view letters) {
  return letters.empty() || FuzzyMatcher(letters).in(name);
}

}  // namespace shw
