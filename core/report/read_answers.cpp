#include "core/report/read_answers.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "core/report/member_reader.h"
#include "core/report/read_check.h"

namespace shw {

template <>
inline constexpr VerifyReport::Outcome kLastOf<VerifyReport::Outcome> =
    VerifyReport::Outcome::kUndecided;
template <>
inline constexpr EqualityVerdict kLastOf<EqualityVerdict> = EqualityVerdict::kUndecided;
template <>
inline constexpr DifferenceKind kLastOf<DifferenceKind> = DifferenceKind::kRetiled;
template <>
inline constexpr Dtype kLastOf<Dtype> = static_cast<Dtype>(static_cast<int>(Dtype::kCount) - 1);

void for_each_member(VerifyReport& report, MemberReader& visit) {
  visit("verdict", report.outcome);
  visit("reasons", report.reasons);
  visit("tensors", report.tensors);
  visit("kept", report.kept);
  visit("lost", report.lost);
  visit("out_of_range", report.out_of_range);
  visit("damaged", report.damaged);
}

void for_each_member(TensorSide& side, MemberReader& visit) {
  visit("dtype", side.dtype);
  visit("tiles", side.tiles);
  visit.optional("missing", side.missing);
  visit.optional("filled", side.filled);
  const auto shape = visit.json.find("shape");
  std::optional<Extents> extents;
  if (shape != visit.json.end() && shape->is_array()) extents = extents_from_json(*shape);
  if (!extents && visit.failed == nullptr) visit.failed = "shape";
  if (extents) side.shape = std::move(*extents);
}

void for_each_member(EntryDifference& entry, MemberReader& visit) {
  visit("kind", entry.kind);
  visit.optional("a", entry.a);
  visit.optional("b", entry.b);
  visit.optional("why", entry.why);
}

namespace {

// The text of an element, which is a number, or a string for NaN and what is no number.
std::string element_text(const Json& json) {
  if (json.is_null()) return {};
  return json.is_string() ? json.get<std::string>() : json.dump();
}

std::optional<double> number_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return std::nullopt;
  if (*found == "Infinity") return std::numeric_limits<double>::infinity();
  return found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

void read_first_difference(const Json& json, ValueDifference& values) {
  const auto found = json.find("first");
  if (found == json.end() || !found->is_object() || !found->contains("index") ||
      !(*found)["index"].is_array() || !found->contains("a") || !found->contains("b"))
    return;
  if (auto index = extents_from_json((*found)["index"]))
    values.first = FirstDifference{std::move(*index), element_text((*found)["a"]),
                                   element_text((*found)["b"])};
}

}  // namespace

void for_each_member(ValueDifference& values, MemberReader& visit) {
  visit("compared", values.compared);
  visit.optional("unread", values.unread);
  visit("differing", values.elements.differing);
  visit.optional("beyond", values.elements.beyond);
  visit.optional("by_value", values.by_value);
  if (values.elements.differing == 0) return;
  visit("bits_only", values.elements.bits_only);
  visit("nan", values.elements.nan);
  values.elements.max_abs = number_in(visit.json, "max_abs").value_or(0);
  values.cosine = number_in(visit.json, "cosine");
  // Null for what has no such distance; a fraction is no whole number.
  MemberReader maybe{visit.json};
  maybe.optional("max_abs", values.elements.max_whole);
  maybe.failed = nullptr;
  maybe.optional("max_ulp", values.elements.max_ulp);
  read_first_difference(visit.json, values);
}

void for_each_member(TensorDifference& tensor, MemberReader& visit) {
  visit("kind", tensor.kind);
  visit("a", tensor.a);
  visit("b", tensor.b);
  visit.optional("within", tensor.within);
  visit.optional("retiled", tensor.retiled);
  visit.optional("to", tensor.other);
  visit.optional("same_elements", tensor.same_elements);
  visit.optional("why", tensor.why);
  if (visit.json.contains("compared")) for_each_member(tensor.values.emplace(), visit);
  const auto error = visit.json.find("error");
  if (error == visit.json.end()) return;
  tensor.error = error_from_json(*error);
  if (error->is_object() && error->contains("in"))
    tensor.error_in = (*error)["in"] == "b" ? 'b' : 'a';
}

namespace {

// The members of an object are named: {fqn: {...}}.
template <class T>
const char* read_named(const Json& json, const char* key, std::vector<T>& to) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_object()) return key;
  for (const auto& [fqn, one] : found->items()) {
    if (one.is_object() && one.contains("from")) continue;  // told under the name in A
    T& read = to.emplace_back();
    if (!MemberReader::read_member(one, read)) return key;
    read.fqn = fqn;
  }
  // Readers of the list count on the order.
  std::ranges::stable_sort(to, {}, &T::kind);
  return nullptr;
}

const char* read_sides(const Json& json, CheckpointDifference& to) {
  for (const auto& [key, tensors] :
       {std::pair("a", &to.tensors_a), std::pair("b", &to.tensors_b)}) {
    const auto side = json.find(key);
    if (side == json.end() || !side->is_object()) return key;
    MemberReader reader{*side};
    reader("tensors", *tensors);
    if (reader.failed != nullptr) return key;
  }
  return nullptr;
}

}  // namespace

Status check_answer(std::string_view text, const char* verb) {
  constexpr std::array<std::string_view, 2> kKeys{"schema", "error"};
  constexpr std::size_t kMostValues = 1000;
  SHW_TRY(const Json json, parse_answer(text, verb, kMostValues, kKeys));
  return {};
}

Result<VerifyReport> verify_from_json(std::string_view text) {
  constexpr std::array<std::string_view, 9> kKeys{"schema",  "error",        "verdict",
                                                  "reasons", "tensors",      "kept",
                                                  "lost",    "out_of_range", "damaged"};
  constexpr std::size_t kMostValues = 100'000;  // nearly all of them reasons
  SHW_TRY(const Json json, parse_answer(text, "verify", kMostValues, kKeys));
  VerifyReport report;
  MemberReader reader{json};
  for_each_member(report, reader);
  if (reader.failed != nullptr) return unreadable_member(reader.failed);
  return report;
}

Result<CheckpointDifference> difference_from_json(std::string_view text) {
  constexpr std::array<std::string_view, 13> kKeys{
      "schema",   "error", "verdict", "data",     "a",       "b",      "in_both",
      "compared", "same",  "doubts",  "unjudged", "tensors", "entries"};
  SHW_TRY(const Json json, parse_answer(text, "diff", kMaxValuesOfCheck, kKeys));
  CheckpointDifference difference;
  MemberReader reader{json};
  reader("verdict", difference.verdict);
  reader("data", difference.data);
  reader("in_both", difference.in_both);
  reader("compared", difference.compared);
  reader("same", difference.same);
  reader("doubts", difference.doubts);
  reader("unjudged", difference.unjudged);
  const char* failed = reader.failed;
  if (failed == nullptr) failed = read_sides(json, difference);
  if (failed == nullptr) failed = read_named(json, "tensors", difference.tensors);
  if (failed == nullptr) failed = read_named(json, "entries", difference.entries);
  if (failed != nullptr) return unreadable_member(failed);
  return difference;
}

}  // namespace shw
