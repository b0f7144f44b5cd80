// JSON trees with a filter that refuses parts of the input, as nlohmann's parser callback does.
// nlohmann 3.11 rescans all members of a container whenever an object in it ends, which is
// quadratic: a certificate of 20,000 tensors took 4 s, a spec of 40,000 took 41 s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/checked.h"
#include "core/base/progress.h"

namespace shw {

// No file that is read here needs more than 16 levels. The library copies and writes trees
// recursively: 100,000 levels overflow the stack.
inline constexpr std::size_t kDeepestJson = 128;
inline constexpr const char* kTooDeepJson = "it is nested more than 128 levels deep";

template <class Json>
struct ParsedJson {
  Json tree = Json(Json::value_t::discarded);  // discarded if the filter refused all of it
  std::string problem = {};                    // the library's message; not empty: there is no tree
  std::optional<std::uint64_t> byte = {};      // position of the last byte read, counted from 1
};

// Rewrites the library's message as "not JSON: syntax error while parsing value - unexpected ']';
// ...", without its error numbers.
template <class Json>
std::string json_error_text(const ParsedJson<Json>& parsed) {
  if (parsed.problem == kTooDeepJson) return parsed.problem;
  const std::size_t at = parsed.problem.find("syntax error");
  return "not JSON: " + (at == std::string::npos ? parsed.problem : parsed.problem.substr(at));
}
// Offset of the byte at which parsing failed, counted from 0.
template <class Json>
std::optional<std::uint64_t> json_error_offset(const ParsedJson<Json>& parsed) {
  if (!parsed.byte) return std::nullopt;
  return *parsed.byte > 0 ? *parsed.byte - 1 : 0;
}

// The member of an object; null if it is missing or `json` is no object.
template <class Json>
const Json* find_member(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found == json.end() ? nullptr : &*found;
}
// The same, with a null value in place of a missing one.
template <class Json>
const Json& member_or_null(const Json& json, const char* key) {
  static const Json kNull;
  const Json* found = find_member(json, key);
  return found == nullptr ? kNull : *found;
}
// nullopt unless it is an integer that fits into int64.
template <class Json>
std::optional<std::int64_t> json_integer(const Json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  return json.is_number_unsigned() ? narrow<std::int64_t>(json.template get<std::uint64_t>())
                                   : std::optional(json.template get<std::int64_t>());
}

// Called as the library's callback is, with `depth` counted from 0: a refused value is left out.
// Containers may be refused when they begin or when they end.
template <class Json>
using JsonFilter = std::function<bool(int depth, typename Json::parse_event_t event, Json& value)>;

// The text as a tree without what `keeps` refuses; discarded if it is not JSON, nested deeper than
// kDeepestJson or if `progress` is cancelled. A zero byte, at which the library's parser stops as
// if the text ended there, is reported as "not JSON". Json: nlohmann::json or
// nlohmann::ordered_json; the parser is compiled for these two once, in json.cpp.
template <class Json>
ParsedJson<Json> parse_json(std::string_view text, const JsonFilter<Json>& keeps = nullptr,
                            const Progress* progress = nullptr);

}  // namespace shw
