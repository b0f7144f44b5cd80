// Reads JSON that a user may have edited. Nothing is ignored: every object lists its keys, and the
// first wrong one is reported.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/checked.h"
#include "core/base/utf8.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/transform/steps.h"

namespace shw {

// Call it before writing: replaces every text by escape_name(), because names of tensors and files
// may contain invalid UTF-8. EditedJson reverses that.
template <class AnyJson>
void escape_texts(AnyJson& json) {
  if (json.is_string()) {
    auto& text = json.template get_ref<std::string&>();
    text = escape_name(text);
  } else if (json.is_structured()) {
    for (AnyJson& one : json) escape_texts(one);
  }
}

// Getters keep the first complaint and return a harmless value; callers check `error` before they
// use any value.
class EditedJson {
 public:
  using Json = nlohmann::ordered_json;

  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  void complain(const std::string& what) {
    if (error_.empty()) error_ = where_ + what;
  }
  void at(std::string where) { where_ = std::move(where); }

  // Complains of any other key.
  void allow_only_keys(const Json& object, std::initializer_list<std::string_view> keys) {
    if (!object.is_object()) return complain("an object is expected");
    for (const auto& [key, value] : object.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        complain("unknown key \"" + key + "\"; allowed keys are " + listed(keys));
    }
  }
  static std::string listed(std::initializer_list<std::string_view> keys) {
    std::string text;
    for (std::string_view key : keys) text += (text.empty() ? "" : ", ") + std::string(key);
    return text;
  }
  static bool has(const Json& object, const char* key) {
    return object.is_object() && object.contains(key);
  }
  const Json& member(const Json& object, const char* key) {
    static const Json kNull;
    if (has(object, key)) return *object.find(key);
    complain(object.is_object() ? std::string("\"") + key + "\" is missing"
                                : std::string("an object with \"") + key + "\" is expected");
    return kNull;
  }

  std::string text(const Json& object, const char* key) {
    const Json& value = member(object, key);
    if (value.is_string()) return unescape_name(value.get_ref<const std::string&>());
    complain(std::string("\"") + key + "\" is not text");
    return {};
  }
  std::int64_t integer(const Json& value, const char* key) {
    if (value.is_number_unsigned()) {
      auto number = narrow<std::int64_t>(value.get<std::uint64_t>());
      if (number) return *number;
    } else if (value.is_number_integer()) {
      return value.get<std::int64_t>();
    }
    complain(std::string("\"") + key + "\" is not 64-bit number");
    return 0;
  }
  template <class T>
  T number(const Json& object, const char* key) {
    auto narrowed = narrow<T>(integer(member(object, key), key));
    if (!narrowed) complain(std::string("\"") + key + "\" is out of range");
    return narrowed.value_or(T{});
  }
  double real(const Json& object, const char* key, double missing) {
    if (!has(object, key)) return missing;
    const Json& value = *object.find(key);
    if (value.is_number()) return value.get<double>();
    complain(std::string("\"") + key + "\" is not a number");
    return missing;
  }
  bool boolean(const Json& object, const char* key) {
    const Json& value = member(object, key);
    if (value.is_boolean()) return value.get<bool>();
    complain(std::string("\"") + key + "\" is neither true nor false");
    return false;
  }
  bool boolean(const Json& object, const char* key, bool missing) {
    return has(object, key) ? boolean(object, key) : missing;
  }
  const Json& list(const Json& object, const char* key) {
    static const Json kEmpty = Json::array();
    const Json& value = member(object, key);
    if (value.is_array()) return value;
    complain(std::string("\"") + key + "\" is not a list");
    return kEmpty;
  }
  // Reads at most `most` numbers.
  Extents extents(const Json& object, const char* key, std::size_t most = kMaxDims) {
    const Json& values = list(object, key);
    Extents out;
    if (values.size() > most) complain(std::string("\"") + key + "\" has too many numbers");
    for (const Json& value : values) {
      if (!ok()) break;
      out.push_back(integer(value, key));
    }
    return out;
  }
  std::vector<std::string> texts(const Json& object, const char* key) {
    std::vector<std::string> out;
    for (const Json& value : list(object, key)) {
      if (!value.is_string())
        complain(std::string("\"") + key + "\" holds something else than text");
      out.push_back(value.is_string() ? unescape_name(value.get_ref<const std::string&>())
                                      : std::string());
    }
    return out;
  }
  Dtype dtype(const Json& object, const char* key) {
    const std::string said = text(object, key);
    auto found = dtype_from_user_text(said);
    if (!found) complain(std::string("\"") + key + "\": there is no dtype \"" + said + "\"");
    return found.value_or(Dtype::kUnknown);
  }
  Box box(const Json& object) { return {extents(object, "offsets"), extents(object, "sizes")}; }
  std::vector<Box> boxes(const Json& object, const char* key) {
    std::vector<Box> out;
    for (const Json& one : list(object, key)) {
      allow_only_keys(one, {"offsets", "sizes"});
      if (!ok()) break;
      out.push_back(box(one));
    }
    return out;
  }

 private:
  std::string error_, where_;
};

// --- steps as users write them: {"step": "cast", "tensors": ["*.weight"], ...}

// Names are not escaped yet (escape_texts).
nlohmann::ordered_json json_of_step(const Step& step);
// Complains of a key that the step does not have, so that no typo is ignored.
Step read_step(EditedJson& in, const nlohmann::ordered_json& json);

}  // namespace shw
