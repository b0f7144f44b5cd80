// JSON trees with a filter that refuses parts of the input, as nlohmann's parser callback does.
// nlohmann 3.11 rescans all members of a container whenever an object in it ends, which is
// quadratic: a certificate of 20,000 tensors took 4 s, a spec of 40,000 took 41 s.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

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

// SAX handler of parse_json. keeps(depth, event, value) is called as the library's callback is: a
// refused value is left out. Containers may be refused when they begin or when they end.
template <class Json, class Keeps>
class JsonTreeBuilder {
 public:
  using Event = typename Json::parse_event_t;
  explicit JsonTreeBuilder(Keeps& keeps) : keeps_(keeps) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(typename Json::number_integer_t value) { return add(value); }
  bool number_unsigned(typename Json::number_unsigned_t value) { return add(value); }
  bool number_float(typename Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(typename Json::binary_t&) { return false; }  // JSON text has no binary values
  bool start_object(std::size_t) { return begin(Event::object_start, Json::value_t::object); }
  bool start_array(std::size_t) { return begin(Event::array_start, Json::value_t::array); }
  bool end_object() { return end(Event::object_end); }
  bool end_array() { return end(Event::array_end); }
  bool key(std::string& key) {
    Json told = std::move(key);
    keeps_key_ = keeps_(depth(), Event::key, told);
    key_ = std::move(told.template get_ref<std::string&>());
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) {
    parsed_.problem = error.what();
    if (const auto* where = dynamic_cast<const typename Json::parse_error*>(&error))
      parsed_.byte = where->byte;
    return false;
  }

  ParsedJson<Json> take(bool is_whole) {
    parsed_.tree = is_whole ? std::move(root_) : Json(Json::value_t::discarded);
    return std::move(parsed_);
  }

 private:
  struct Open {
    bool keeps = false;    // the filter's answer when the container began
    Json* at = nullptr;    // null if the container is not kept
    std::string key = {};  // the key of the container in its parent object
    // For objects that keep insertion order: position by key, because their lookup is linear.
    std::unordered_map<std::string, std::size_t> places = {};
  };
  static constexpr bool kIsInOrder = requires(typename Json::object_t & object) {
    object.pop_back();
  };
  int depth() const { return static_cast<int>(open_.size()); }

  bool add(Json value) {
    if (!open_.empty() && !open_.back().keeps) return true;
    if (keeps_(depth(), Event::value, value)) place(std::move(value));
    return true;
  }
  bool begin(Event event, typename Json::value_t type) {
    if (open_.size() == kDeepestJson) {
      parsed_.problem = kTooDeepJson;
      return false;
    }
    Json none(Json::value_t::discarded);
    Open open{keeps_(depth(), event, none)};
    if (!open_.empty() && open_.back().at != nullptr && open_.back().at->is_object())
      open.key = key_;
    if (open.keeps) open.at = place(Json(type));
    open_.push_back(std::move(open));
    return true;
  }
  bool end(Event event) {
    Open ended = std::move(open_.back());
    open_.pop_back();
    if (ended.at == nullptr || keeps_(depth(), event, *ended.at)) return true;
    if (open_.empty()) {
      root_ = nullptr;
    } else if (Json& holder = *open_.back().at; holder.is_object()) {
      leave_out(holder, ended.key);
    } else {
      holder.erase(holder.size() - 1);
    }
    return true;
  }
  // Inserts a value and returns its address; null if the enclosing container is not kept.
  Json* place(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Json* holder = open_.back().at;
    if (holder == nullptr || (holder->is_object() && !keeps_key_)) return nullptr;
    if (holder->is_object()) return &(member(*holder) = std::move(value));
    holder->push_back(std::move(value));
    return &holder->back();
  }

  // The member of `holder` for the current key.
  Json& member(Json& holder) {
    if constexpr (kIsInOrder) {
      auto& members = holder.template get_ref<typename Json::object_t&>();
      auto [found, is_new] = open_.back().places.try_emplace(key_, members.size());
      if (is_new) members.emplace_back(key_, nullptr);
      return (members.begin() + static_cast<std::ptrdiff_t>(found->second))->second;
    } else {
      return holder[key_];
    }
  }
  void leave_out(Json& holder, const std::string& key) {
    holder.erase(key);
    if constexpr (kIsInOrder) {
      auto& places = open_.back().places;
      places.clear();
      std::size_t place = 0;
      for (const auto& [name, value] : holder.template get_ref<typename Json::object_t&>())
        places.emplace(name, place++);
    }
  }

  Keeps& keeps_;
  ParsedJson<Json> parsed_;
  Json root_ = nullptr;
  std::vector<Open> open_;
  std::string key_;
  bool keeps_key_ = true;
};

// Parses the characters [first, last), which may come from a single-pass iterator. A zero byte, at
// which the library's parser stops as if the text ended there, is reported as "not JSON"; it is
// searched for only in contiguous input.
template <class Json, class Iterator, class Keeps>
ParsedJson<Json> parse_json(Iterator first, Iterator last, Keeps&& keeps) {
  if constexpr (std::contiguous_iterator<Iterator>) {
    if (const auto zero = std::find(first, last, '\0'); zero != last) {
      ParsedJson<Json> refused;
      refused.problem = "syntax error - there is a zero byte";
      refused.byte = static_cast<std::uint64_t>(zero - first) + 1;
      return refused;
    }
  }
  JsonTreeBuilder<Json, Keeps> maker(keeps);
  const bool is_whole = Json::sax_parse(std::move(first), std::move(last), &maker);
  return maker.take(is_whole);
}

// The whole text as a tree; discarded if it is not JSON or nested deeper than kDeepestJson.
template <class Json>
ParsedJson<Json> parse_json(std::string_view text) {
  return parse_json<Json>(text.begin(), text.end(),
                          [](int, typename Json::parse_event_t, Json&) { return true; });
}

}  // namespace shw
