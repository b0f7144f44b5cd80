#include "core/base/json.h"

#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shw {
namespace {

// An input iterator over text that ends early when the job is cancelled: 200 MB of JSON take
// seconds.
class CancellableText {
 public:
  CancellableText(std::string_view text, const Progress* progress)
      : text_(text), progress_(progress) {}

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    Iterator(const char* at, const Progress* progress) : at_(at), progress_(progress) {}
    reference operator*() const { return *at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++at_;
      return before;
    }
    // Checks for cancellation once per 64 KiB.
    bool operator==(const Iterator& end) const {
      constexpr std::uintptr_t kEvery = 1 << 16;
      if (at_ == end.at_) return true;
      return reinterpret_cast<std::uintptr_t>(at_) % kEvery == 0 && is_cancelled(progress_);
    }

   private:
    const char* at_;
    const Progress* progress_;
  };
  Iterator begin() const { return {text_.data(), progress_}; }
  Iterator end() const { return {text_.data() + text_.size(), nullptr}; }

 private:
  std::string_view text_;
  const Progress* progress_;
};

// SAX handler of parse_json.
template <class Json>
class JsonTreeBuilder {
 public:
  using Event = typename Json::parse_event_t;
  explicit JsonTreeBuilder(const JsonFilter<Json>& keeps) : filter_(keeps) {}

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
    keeps_key_ = keeps(depth(), Event::key, told);
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
  bool keeps(int depth, Event event, Json& value) {
    return !filter_ || filter_(depth, event, value);
  }
  int depth() const { return static_cast<int>(open_.size()); }

  bool add(Json value) {
    if (!open_.empty() && !open_.back().keeps) return true;
    if (keeps(depth(), Event::value, value)) place(std::move(value));
    return true;
  }
  bool begin(Event event, typename Json::value_t type) {
    if (open_.size() == kDeepestJson) {
      parsed_.problem = kTooDeepJson;
      return false;
    }
    Json none(Json::value_t::discarded);
    Open open{keeps(depth(), event, none)};
    if (!open_.empty() && open_.back().at != nullptr && open_.back().at->is_object())
      open.key = key_;
    if (open.keeps) open.at = place(Json(type));
    open_.push_back(std::move(open));
    return true;
  }
  bool end(Event event) {
    Open ended = std::move(open_.back());
    open_.pop_back();
    if (ended.at == nullptr || keeps(depth(), event, *ended.at)) return true;
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

  const JsonFilter<Json>& filter_;
  ParsedJson<Json> parsed_;
  Json root_ = nullptr;
  std::vector<Open> open_;
  std::string key_;
  bool keeps_key_ = true;
};

}  // namespace

template <class Json>
ParsedJson<Json> parse_json(std::string_view text, const JsonFilter<Json>& keeps,
                            const Progress* progress) {
  if (const std::size_t zero = text.find('\0'); zero != text.npos) {
    ParsedJson<Json> refused;
    refused.problem = "syntax error - there is a zero byte";
    refused.byte = zero + 1;
    return refused;
  }
  JsonTreeBuilder<Json> builder(keeps);
  const CancellableText characters(text, progress);
  return builder.take(Json::sax_parse(characters.begin(), characters.end(), &builder));
}

template ParsedJson<nlohmann::json> parse_json(std::string_view, const JsonFilter<nlohmann::json>&,
                                               const Progress*);
template ParsedJson<nlohmann::ordered_json> parse_json(std::string_view,
                                                       const JsonFilter<nlohmann::ordered_json>&,
                                                       const Progress*);

}  // namespace shw
