// Reads the members of an answer in JSON, such as that of another machine: the counterpart of
// for_each_member() of check_members.h. Only included by .cpp files of core/report.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/report/check_members.h"
#include "core/report/json.h"

namespace shw {

// Reads the members of a value; `failed` is the first key that is missing or of another form.
struct MemberReader {
  const Json& json;
  const char* failed = nullptr;

  template <class T>
  void operator()(const char* key, T& member) {
    if (failed != nullptr) return;
    auto found = json.find(key);
    if (found == json.end() || !read_member(*found, member)) failed = key;
  }
  template <class T>
  void optional(const char* key, T& member) {
    if (json.contains(key)) (*this)(key, member);
  }

  static bool read_member(const Json& from, std::string& to) {
    if (from.is_string()) to = from.get<std::string>();
    return from.is_string();
  }
  static bool read_member(const Json& from, bool& to) {
    if (from.is_boolean()) to = from.get<bool>();
    return from.is_boolean();
  }
  // A count: from 0 to the largest that fits.
  template <std::integral T>
  requires(!std::same_as<T, bool>) static bool read_member(const Json& from, T& to) {
    if (!from.is_number_unsigned()) return false;
    const auto value = from.get<std::uint64_t>();
    if (value > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return false;
    to = static_cast<T>(value);
    return true;
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  static bool read_member(const Json& from, Enum& to) {
    auto read = from.is_string() ? from_name<Enum>(from.get_ref<const std::string&>())
                                 : std::optional<Enum>();
    if (read) to = *read;
    return read.has_value();
  }
  template <class T>
  static bool read_member(const Json& from, std::optional<T>& to) {
    return from.is_null() || read_member(from, to.emplace());
  }
  template <class T>
  static bool read_member(const Json& from, std::vector<T>& to) {
    return from.is_array() && std::all_of(from.begin(), from.end(), [&](const Json& one) {
             return read_member(one, to.emplace_back());
           });
  }
  static bool read_member(const Json& from, Evidence& to);  // in read_check.cpp
  template <class T>
  requires requires(T& value, MemberReader& reader) { for_each_member(value, reader); }
  static bool read_member(const Json& from, T& to) {
    MemberReader reader{from};
    if (from.is_object()) for_each_member(to, reader);
    return from.is_object() && reader.failed == nullptr;
  }
};

// nullopt if a number is no 64-bit one.
std::optional<Extents> extents_from_json(const Json& json);
Error error_from_json(const Json& json);
// The tree of an answer of `verb`: at most `most` values, of this schema, and no error. Keys that
// are not in `keys` are left out before they take memory; without `keys` all are read.
Result<Json> parse_answer(std::string_view text, const char* verb, std::size_t most,
                          std::span<const std::string_view> keys = {});
tl::unexpected<Error> unreadable_member(const char* key);

}  // namespace shw
