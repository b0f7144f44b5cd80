#include "core/report/read_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/base/version.h"
#include "core/model/evidence.h"
#include "core/report/check_members.h"
#include "core/report/member_reader.h"
#include "core/report/report.h"

namespace shw {
namespace {

// All types that a value of JSON may have had; the first is the likely one.
std::vector<EvidenceValue> possible_values(const Json& json) {
  std::vector<EvidenceValue> out;
  std::vector<std::string> texts;
  if (json.is_boolean()) out.emplace_back(json.get<bool>());
  if (json.is_number_integer()) {
    if (!json.is_number_unsigned() || narrow<std::int64_t>(json.get<std::uint64_t>()))
      out.emplace_back(json.get<std::int64_t>());
  }
  if (json.is_number()) out.emplace_back(json.get<double>());
  if (json.is_string()) {
    out.emplace_back(json.get<std::string>());
    if (json == "NaN") out.emplace_back(std::numeric_limits<double>::quiet_NaN());
    if (json == "Infinity") out.emplace_back(std::numeric_limits<double>::infinity());
    if (json == "-Infinity") out.emplace_back(-std::numeric_limits<double>::infinity());
  }
  if (!json.is_array()) return out;
  if (MemberReader::read_member(json, texts)) out.emplace_back(std::move(texts));
  if (auto numbers = extents_from_json(json)) out.emplace_back(std::move(*numbers));
  if (auto boxes = boxes_from_json(json)) out.emplace_back(std::move(*boxes));
  return out;
}

struct KeyList {
  std::vector<std::string_view> keys = {"schema", "error"};
  template <class T>
  void operator()(const char* key, const T&) {
    keys.emplace_back(key);
  }
  template <class T>
  void optional(const char* key, const T&) {
    keys.emplace_back(key);
  }
};

std::vector<std::string_view> known_keys() {
  KeyList list;
  const CheckReport none;
  for_each_member(none, list);
  return list.keys;
}

// Keeps the keys of the whole answer that are known, and at most so many values.
struct AnswerFilter {
  std::size_t most;
  std::size_t count = 0;
  bool is_known = true;  // the last key of the whole answer
  std::span<const std::string_view> keys;

  bool operator()(int depth, Json::parse_event_t event, const Json& value) {
    using Event = Json::parse_event_t;
    const bool is_end = event == Event::object_end || event == Event::array_end;
    if (event == Event::key && depth == 1 && !keys.empty())
      is_known = std::ranges::find(keys, value.get_ref<const std::string&>()) != keys.end();
    if (depth > 0 && !is_known) return is_end;
    if (!is_end && count <= most) ++count;
    return count <= most;
  }
};

}  // namespace

std::optional<Extents> extents_from_json(const Json& json) {
  std::vector<std::int64_t> numbers;
  for (const Json& one : json) {
    const auto number = json_integer(one);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return Extents(numbers.begin(), numbers.end());
}

bool MemberReader::read_member(const Json& from, Evidence& to) {
  if (!from.is_object()) return false;
  for (const auto& [key, json] : from.items()) {
    std::vector<EvidenceValue> values = possible_values(json);
    if (values.empty()) return false;
    auto found = std::ranges::find_if(
        values, [&, &name = key](const EvidenceValue& one) { return is_evidence(name, one); });
    to.emplace_back(key, std::move(found == values.end() ? values.front() : *found));
  }
  return true;
}

Error error_from_json(const Json& json) {
  Error error{ErrorKind::kDamaged, "that machine answers with an error"};
  MemberReader reader{json};
  std::string code;
  if (!json.is_object()) return error;
  reader("message", error.message);
  reader.optional("advice", error.advice);
  reader.optional("tensor", error.place.tensor);
  reader.optional("code", code);
  for (auto kind : {ErrorKind::kUsage, ErrorKind::kNotFound, ErrorKind::kIo, ErrorKind::kDamaged,
                    ErrorKind::kUnsupported, ErrorKind::kCancelled}) {
    if (code == error_code(kind)) error.kind = kind;
  }
  if (json.contains("file") && json["file"].is_string())
    error.place.file = json["file"].get<std::string>();
  if (json.contains("offset") && json["offset"].is_number_unsigned())
    error.place.offset = json["offset"].get<std::uint64_t>();
  return error;
}

std::optional<std::vector<Box>> boxes_from_json(const Json& json) {
  std::vector<Box> boxes;
  if (!json.is_array()) return std::nullopt;
  for (const Json& one : json) {
    if (!one.is_object() || !one.contains("offsets") || !one.contains("sizes") ||
        !one["offsets"].is_array() || !one["sizes"].is_array())
      return std::nullopt;
    auto offsets = extents_from_json(one["offsets"]), sizes = extents_from_json(one["sizes"]);
    if (!offsets || !sizes || offsets->size() != sizes->size()) return std::nullopt;
    for (std::size_t d = 0; d < offsets->size(); ++d) {
      if (!checked_add((*offsets)[d], (*sizes)[d])) return std::nullopt;
    }
    boxes.push_back({std::move(*offsets), std::move(*sizes)});
  }
  return boxes;
}

Result<Json> parse_answer(std::string_view text, const char* verb, std::size_t most,
                          std::span<const std::string_view> keys) {
  AnswerFilter filter{.most = most, .keys = keys};
  ParsedJson<Json> parsed = parse_json<Json>(text, std::ref(filter));
  Json& json = parsed.tree;
  if (filter.count > most)
    return fail(ErrorKind::kUnsupported, fmt::format("holds more than {} values", most));
  if (!json.is_object())
    return fail(ErrorKind::kUnsupported, fmt::format("is not an answer of `{} --json`", verb));
  if (!json.contains("schema") || json["schema"] != kJsonSchema)
    return fail(ErrorKind::kUnsupported, "is an answer of another version of shardwright");
  if (json.contains("error")) return tl::unexpected<Error>(error_from_json(json["error"]));
  return std::move(json);
}

tl::unexpected<Error> unreadable_member(const char* key) {
  return fail(ErrorKind::kUnsupported,
              fmt::format("has no \"{}\" that this version can read", key));
}

Result<CheckReport> check_from_json(std::string_view text, std::size_t most) {
  const std::vector<std::string_view> keys = known_keys();
  SHW_TRY(const Json json, parse_answer(text, "check", most, keys));
  CheckReport report;
  MemberReader reader{json};
  for_each_member(report, reader);
  report.lacks_diagnoses = true;
  if (reader.failed != nullptr) return unreadable_member(reader.failed);
  return report;
}

}  // namespace shw
