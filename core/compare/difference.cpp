#include "core/compare/difference.h"

namespace shw {

std::string_view name(DifferenceKind kind) {
  constexpr std::string_view kNames[kDifferenceKinds] = {"missing",   "added",   "incomplete",
                                                         "reshaped",  "dtype",   "values",
                                                         "undecided", "renamed", "retiled"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name(EqualityVerdict verdict) {
  if (verdict == EqualityVerdict::kSame) return "same";
  return verdict == EqualityVerdict::kDifferent ? "different" : "undecided";
}

}  // namespace shw
