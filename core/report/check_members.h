// The members of an answer of `check --json`, once for its writer and its reader: for_each_member()
// calls visit(key, member) in order, or visit.optional(key, member) for keys that are left out if
// the member is empty. Only included by .cpp files of core/report.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/report/json.h"
#include "core/rules/check.h"

namespace shw {

template <class T, class Plain>
concept IsMaybeConst = std::same_as<std::remove_const_t<T>, Plain>;

template <IsMaybeConst<Remedy> R>
void for_each_member(R& remedy, auto& visit) {
  visit("kind", remedy.kind);
  visit("lossless", remedy.lossless);
  visit("text", remedy.text);
}

template <IsMaybeConst<Finding> F>
void for_each_member(F& finding, auto& visit) {
  visit("rule", finding.rule);
  visit("severity", finding.severity);
  visit("consequence", finding.consequence);
  visit("subjects", finding.subjects);
  visit("cause", finding.cause);
  visit("evidence", finding.evidence);
  visit("remedy", finding.remedy);
  visit.optional("link", finding.link);
}

template <IsMaybeConst<Unjudged> U>
void for_each_member(U& unjudged, auto& visit) {
  visit("what", unjudged.what);
  visit("needs", unjudged.needs);
  visit.optional("hint", unjudged.hint);
  visit.optional("unproved_bytes", unjudged.is_unproved_bytes);
}

template <IsMaybeConst<CheckReport> R>
void for_each_member(R& report, auto& visit) {
  visit("verdict", report.verdict);
  visit("depth", report.depth);
  visit("deeper", report.deeper);
  visit("findings", report.findings);
  visit("unjudged", report.unjudged);
}

inline std::string_view name(Severity severity) {
  return severity == Severity::kError     ? "error"
         : severity == Severity::kWarning ? "warning"
                                          : "info";
}

template <class Enum>
inline constexpr Enum kLastOf = Enum{};
template <>
inline constexpr Severity kLastOf<Severity> = Severity::kError;
template <>
inline constexpr Consequence kLastOf<Consequence> = Consequence::kDataLost;
template <>
inline constexpr Verdict kLastOf<Verdict> = Verdict::kUndecided;
template <>
inline constexpr Depth kLastOf<Depth> = Depth::kData;

template <class Enum>
std::optional<Enum> from_name(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(kLastOf<Enum>); ++i) {
    if (name(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

// nullopt if it is not a list of boxes, or if a box ends beyond 64 bits.
std::optional<std::vector<Box>> boxes_from_json(const Json& json);  // in read_check.cpp

}  // namespace shw
