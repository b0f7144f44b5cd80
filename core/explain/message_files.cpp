#include "core/explain/message_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/explain/message_condition.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

using Json = nlohmann::json;
using Keys = std::initializer_list<std::string_view>;

constexpr std::string_view kSchema = "shardwright-messages/1";

// Owns the text and conditions that the rows of a group refer to by view.
struct GroupTexts {
  Json tree;
  std::deque<MessageCondition> conditions;
  std::deque<MessageWords> words;
};

class GroupReader {
 public:
  explicit GroupReader(GroupTexts& texts) : texts_(texts) {}

  const std::string& error() const { return error_; }

  MessageGroup read() {
    const Json& tree = texts_.tree;
    MessageGroup group;
    allow_only_keys(tree, {"schema", "about", "order", "words", "meanings", "messages"});
    if (text(tree, "schema") != kSchema) complain("\"schema\" is not " + std::string(kSchema));
    group.about = text(tree, "about");
    group.order = whole(tree, "order");
    if (const Json* meanings = find_member(tree, "meanings")) {
      if (!meanings->is_object()) complain("\"meanings\" is not an object");
      for (const auto& [name, meaning] : meanings->items()) {
        at_ = "the meaning \"" + name + "\": ";
        shared_.emplace(name, read_interpretation(meaning));
      }
    }
    at_.clear();
    for (const Json& row : list(tree, "messages")) {
      at_ = fmt::format("message {}: ", group.kinds.size() + 1);
      group.kinds.push_back(read_kind(row));
    }
    return group;
  }

 private:
  void complain(const std::string& what) {
    if (error_.empty()) error_ = at_ + what;
  }
  void allow_only_keys(const Json& object, Keys keys) {
    if (!object.is_object()) return complain("is not an object");
    for (const auto& [key, value] : object.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        complain("unknown key \"" + key + "\"");
    }
  }
  std::string_view text_of(const Json& value, const char* key) {
    if (value.is_string()) return value.get_ref<const std::string&>();
    complain(fmt::format("\"{}\" is not a text", key));
    return {};
  }
  std::string_view text_or_empty(const Json& object, const char* key) {
    const Json* value = find_member(object, key);
    return value == nullptr ? std::string_view() : text_of(*value, key);
  }
  std::string_view text(const Json& object, const char* key) {
    const std::string_view found = text_or_empty(object, key);
    if (found.empty()) complain(fmt::format("\"{}\" is missing", key));
    return found;
  }
  std::int64_t whole(const Json& object, const char* key) {
    const Json* value = find_member(object, key);
    if (value != nullptr && value->is_number_integer()) return value->get<std::int64_t>();
    complain(fmt::format("\"{}\" is not a whole number", key));
    return 0;
  }
  bool flag(const Json& object, const char* key) {
    const Json* value = find_member(object, key);
    if (value != nullptr && !value->is_boolean())
      complain(fmt::format("\"{}\" is not a flag", key));
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }
  const Json& list(const Json& object, const char* key) {
    static const Json kEmpty = Json::array();
    const Json* value = find_member(object, key);
    if (value != nullptr && value->is_array()) return *value;
    complain(fmt::format("\"{}\" is not a list", key));
    return kEmpty;
  }
  // The texts of a list; none if the key is missing.
  std::vector<std::string_view> texts(const Json& object, const char* key) {
    std::vector<std::string_view> out;
    if (find_member(object, key) == nullptr) return out;
    for (const Json& one : list(object, key)) out.push_back(text_of(one, key));
    return out;
  }

  Interpretation read_interpretation(const Json& json) {
    allow_only_keys(
        json, {"id", "rule", "wrong", "weight", "title", "text", "decide", "command", "speakers"});
    Interpretation meaning;
    meaning.id = text_or_empty(json, "id");
    if (const std::string_view rule = text_or_empty(json, "rule"); !rule.empty()) {
      meaning.rule = find_rule(rule);
      if (meaning.rule == nullptr) complain("there is no rule \"" + std::string(rule) + "\"");
    }
    if (meaning.id.empty() && meaning.rule == nullptr) complain("neither \"id\" nor \"rule\"");
    meaning.wrong = read_side(text_or_empty(json, "wrong"));
    const Json* weight = find_member(json, "weight");
    meaning.weight = weight != nullptr && weight->is_number() ? weight->get<double>() : 0;
    if (!(meaning.weight > 0 && meaning.weight < 1)) complain("\"weight\" is not between 0 and 1");
    meaning.title = text(json, "title");
    meaning.text = text_or_empty(json, "text");
    meaning.decide = text_or_empty(json, "decide");
    meaning.command = text_or_empty(json, "command");
    meaning.speakers = text_or_empty(json, "speakers");
    return meaning;
  }
  FaultSide read_side(std::string_view word) {
    for (FaultSide side : {FaultSide::kCheckpoint, FaultSide::kRequest, FaultSide::kBoth}) {
      if (word == name(side)) return side;
    }
    if (!word.empty() && word != name(FaultSide::kEither))
      complain("\"wrong\" is none of checkpoint, request, both, either");
    return FaultSide::kEither;
  }

  NameTest read_name_test(const Json& json) {
    allow_only_keys(json, {"is", "begins", "ends", "contains", "not"});
    return {texts(json, "is"), texts(json, "begins"), texts(json, "ends"), texts(json, "contains"),
            flag(json, "not")};
  }
  void add_test(std::string_view name, MessageCondition& condition) {
    if (auto test = message_test(name))
      condition.tests.push_back(*test);
    else
      complain("there is no test \"" + std::string(name) + "\"");
  }
  // Null if the patterns alone decide.
  const MessageCondition* read_condition(const Json& json) {
    MessageCondition condition;
    if (const Json* names = find_member(json, "name"); names != nullptr && names->is_array()) {
      for (const Json& one : *names) condition.names.push_back(read_name_test(one));
    } else if (names != nullptr) {
      condition.names.push_back(read_name_test(*names));
    }
    if (const Json* tests = find_member(json, "if"); tests != nullptr && tests->is_array()) {
      for (std::string_view one : texts(json, "if")) add_test(one, condition);
    } else if (tests != nullptr) {
      add_test(text(json, "if"), condition);
    }
    if (const Json* numbers = find_member(json, "numbers")) {
      if (!numbers->is_object()) complain("\"numbers\" is not an object");
      for (const auto& [key, values] : numbers->items()) {
        auto& wanted = condition.numbers.emplace_back(key, std::vector<std::int64_t>()).second;
        for (const Json& value : values) {
          if (!value.is_number_integer()) complain("\"numbers\" must contain only numbers");
          wanted.push_back(value.is_number_integer() ? value.get<std::int64_t>() : 0);
        }
      }
    }
    if (condition.names.empty() && condition.tests.empty() && condition.numbers.empty())
      return nullptr;
    return &texts_.conditions.emplace_back(std::move(condition));
  }

  // The words of a list, with those of each shared list ("#saving") in the place of its name.
  void add_words(const Json& json, std::vector<std::string_view>& words) {
    const std::string_view word = text_of(json, "word");
    if (!word.starts_with('#')) {
      words.push_back(word);
      return;
    }
    const Json* shared = find_member(texts_.tree, "words");
    const std::string name(word.substr(1));
    const Json* list = shared == nullptr ? nullptr : find_member(*shared, name.c_str());
    if (list == nullptr || !list->is_array()) return complain("unknown word list \"" + name + "\"");
    for (const Json& one : *list) words.push_back(text_of(one, name.c_str()));
  }
  std::vector<std::string_view> read_word_alternatives(const Json& json) {
    std::vector<std::string_view> words;
    if (!json.is_array()) {
      add_words(json, words);
      return words;
    }
    for (const Json& one : json) add_words(one, words);
    return words;
  }
  const MessageWords* read_words(const Json& json) {
    MessageWords words;
    for (const Json& group : list(json, "all")) words.all.push_back(read_word_alternatives(group));
    if (words.all.empty()) complain("\"all\" has no words");
    if (const Json* none = find_member(json, "none")) words.none = read_word_alternatives(*none);
    words.matches_in_traceback = flag(json, "in_traceback");
    return &texts_.words.emplace_back(std::move(words));
  }

  MessageKind read_kind(const Json& json) {
    allow_only_keys(
        json, {"id", "loader", "example", "patterns", "all", "none", "name", "if", "numbers",
               "says_only_that_it_failed", "traceback_says_more", "in_traceback", "meanings"});
    MessageKind kind;
    kind.id = text(json, "id");
    kind.loader = text_or_empty(json, "loader");
    kind.example = text(json, "example");
    if (find_member(json, "all") != nullptr) kind.words = read_words(json);
    const auto patterns = texts(json, "patterns");
    if (patterns.empty() != (kind.words != nullptr) || patterns.size() > kind.patterns.size())
      complain(fmt::format("\"patterns\" has not 1 to {} texts", kind.patterns.size()));
    std::copy_n(patterns.begin(), std::min(patterns.size(), kind.patterns.size()),
                kind.patterns.begin());
    kind.condition = read_condition(json);
    if (flag(json, "says_only_that_it_failed")) kind.certainty = MessageCertainty::kOnlyFailure;
    kind.traceback_says_more = flag(json, "traceback_says_more");
    if (find_member(json, "meanings") != nullptr) read_meanings(list(json, "meanings"), kind);
    return kind;
  }
  void read_meanings(const Json& json, MessageKind& kind) {
    if (json.size() > kind.meanings.size()) {
      complain(fmt::format("has more than {} meanings", kind.meanings.size()));
      return;
    }
    for (std::size_t i = 0; i < json.size(); ++i) {
      if (!json[i].is_string()) {
        kind.meanings[i] = read_interpretation(json[i]);
        continue;
      }
      const auto shared = shared_.find(json[i].get_ref<const std::string&>());
      if (shared != shared_.end())
        kind.meanings[i] = shared->second;
      else
        complain("there is no meaning " + json[i].dump());
    }
  }

  GroupTexts& texts_;
  std::map<std::string, Interpretation, std::less<>> shared_;
  std::string error_, at_;
};

}  // namespace

Result<MessageGroup> message_group_from_json(std::string_view text, const std::string& file) {
  auto texts = std::make_shared<GroupTexts>();
  auto parsed = parse_json<Json>(text);
  if (parsed.tree.is_discarded())
    return fail(ErrorKind::kUsage, json_error_text(parsed), {file, json_error_offset(parsed)});
  texts->tree = std::move(parsed.tree);
  GroupReader reader(*texts);
  MessageGroup group = reader.read();
  if (!reader.error().empty()) return fail(ErrorKind::kUsage, reader.error(), {file});
  group.texts = std::move(texts);
  return group;
}

}  // namespace shw
