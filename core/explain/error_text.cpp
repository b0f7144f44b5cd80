#include "core/explain/error_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/explain/general_kinds.h"
#include "core/explain/general_message.h"
#include "core/explain/message_condition.h"
#include "core/explain/message_kinds.h"
#include "core/explain/message_reader.h"
#include "core/explain/speaker.h"
#include "core/explain/stated_values.h"

namespace shw {
namespace {

// Patterns by the first letters of their anchors, so that one pass finds all.
constexpr std::size_t kLetters = 4;
struct PatternEntry {
  const MessageKind* kind;
  std::string_view pattern;
};
using PatternIndex = std::unordered_map<std::string_view, std::vector<PatternEntry>>;

PatternIndex make_index() {
  PatternIndex index;
  for (const MessageKind* kind : message_kinds()) {
    for (std::string_view pattern : kind->patterns) {
      if (!pattern.empty())
        index[literal_prefix_of_pattern(pattern).substr(0, kLetters)].push_back({kind, pattern});
    }
  }
  return index;
}

// "{fqn}": the source line in a traceback that created the message.
bool is_program(std::string_view name) {
  std::size_t open = name.find('{');
  if (open == name.npos || open + 1 >= name.size()) return false;
  char next = name[open + 1];
  return (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') || next == '_';
}

// `KeyError(f"...` is a source line too.
bool is_string_prefix(const PastedText& pasted, const FoundMessage& found) {
  const std::string& name = found.message.name;
  const bool is_prefix = name == "f" || name == "r" || name == "rf" || name == "fr";
  return is_prefix && found.end < pasted.text.size() &&
         (pasted.text[found.end] == '"' || pasted.text[found.end] == '\'');
}

// "raise KeyError(key)" and "except KeyError:" are source lines, not messages.
bool is_code_line(const PastedText& pasted, std::size_t at) {
  const std::string_view before = std::string_view(pasted.lower).substr(0, at);
  if (before.ends_with("except ")) return true;
  if (!before.ends_with("raise ")) return false;
  const std::size_t open = pasted.lower.find('(', at);
  return open != std::string::npos && open + 1 < pasted.lower.size() &&
         pasted.lower[open + 1] >= 'a' && pasted.lower[open + 1] <= 'z';
}

std::optional<FoundMessage> message_at(const PastedText& pasted, std::size_t at,
                                       const std::vector<PatternEntry>& entries) {
  if (is_code_line(pasted, at)) return std::nullopt;
  for (const PatternEntry& entry : entries) {
    auto found = read_message(pasted, at, entry.pattern);
    if (!found) continue;
    found->message.kind = entry.kind;
    if (is_program(found->message.name) || is_string_prefix(pasted, *found)) continue;
    if (entry.kind->condition != nullptr && !is_satisfied(*entry.kind->condition, found->message))
      continue;
    return found;
  }
  return std::nullopt;
}

std::string key_of(const ErrorMessage& message) {
  std::string key(message.kind->id);
  key += '\n' + message.name + '\n' + to_text(ExtentsView(message.saved)) +
         to_text(ExtentsView(message.current));
  for (const auto& [name, number] : message.numbers) key += fmt::format(" {}", number);
  return key;
}

struct Collector {
  ErrorText& result;
  std::unordered_set<std::string> seen = {};  // every rank prints the same

  void add(ErrorMessage message) {
    if (!seen.insert(key_of(message)).second) return;
    if (result.messages.size() == kMaxMessages) {
      ++result.left_out;
      return;
    }
    result.messages.push_back(std::move(message));
  }
};

// Drops general messages ("Error(s) in loading state_dict") next to specific ones, and messages
// without a name next to the same with one.
void drop_general_messages(std::vector<ErrorMessage>& messages) {
  auto vague = [](const ErrorMessage& message) {
    return message.kind->certainty == MessageCertainty::kOnlyFailure;
  };
  std::unordered_set<std::string_view> named;
  for (const ErrorMessage& message : messages) {
    if (!message.name.empty()) named.insert(message.kind->id);
  }
  auto less = [&](const ErrorMessage& message) {
    return message.name.empty() && message.kind->id != kShapes && message.numbers.empty() &&
           named.count(message.kind->id) != 0;
  };
  // Two equal shapes are not the fault: the words behind them are.
  auto has_equal_shapes = [](const ErrorMessage& message) {
    return message.kind->id == kShapes && !message.saved.empty() &&
           message.saved == message.current;
  };
  if (!std::all_of(messages.begin(), messages.end(), has_equal_shapes))
    std::erase_if(messages, has_equal_shapes);
  bool all_vague = std::all_of(messages.begin(), messages.end(), vague);
  messages.erase(std::remove_if(messages.begin(), messages.end(),
                                [&](const ErrorMessage& message) {
                                  return less(message) || (!all_vague && vague(message));
                                }),
                 messages.end());
}

// True if the only message is a generic Python error such as "KeyError: ..."; its traceback then
// says more.
bool is_generic_python_error(const std::vector<ErrorMessage>& messages) {
  return messages.size() == 1 && messages[0].kind->traceback_says_more;
}

// "KeyError: 'Key a.b not found in the files'": a sentence, not a key.
bool is_key_error_with_sentence(const std::vector<ErrorMessage>& messages) {
  return messages.size() == 1 && messages[0].kind->id == "error-in-key" &&
         messages[0].name.find(' ') != std::string::npos;
}

// "ERROR 12-09 00:49:29 engine.py:366] 'layers.0.mlp.down_proj.weight.absmax'": servers log only
// the key of a KeyError, and ComfyUI writes it after "!!! ". Returns the text with "KeyError: "
// inserted; empty if it is not one.
std::string insert_key_error(const PastedText& pasted) {
  const std::string_view text = pasted.text;
  for (char quote : {'\'', '"'}) {
    const std::size_t last = text.find_last_not_of(" \n");
    if (last == text.npos || text[last] != quote) continue;
    const std::size_t first = last == 0 ? text.npos : text.rfind(quote, last - 1);
    if (first == text.npos) continue;
    const std::string_view name = text.substr(first + 1, last - first - 1);
    const bool is_name = name.find('.') != name.npos && name.find_first_of(" \n/(") == name.npos;
    const std::string_view before = text.substr(0, first);
    const bool is_alone = before.empty() || before.ends_with("] ") || before.ends_with("\n") ||
                          before.ends_with("!!! ");
    if (is_name && is_alone)
      return "KeyError: " + std::string(text.substr(first, last - first + 1));
  }
  return {};
}

// Adds what the text shows beside the kinds: the program, and the two values of a sentence.
void add_program_and_stated_values(const PastedText& pasted, std::vector<ErrorMessage>& messages) {
  const std::string_view program = program_of_message(pasted.lower);
  for (ErrorMessage& message : messages)
    // torch speaks in all programs: the traceback tells which of them called it.
    message.speaker =
        message.kind->loader.empty() || (message.kind->loader == "torch" && !program.empty())
            ? program
            : message.kind->loader;
  if (messages.size() != 1 || !messages[0].saved.empty() || !messages[0].numbers.empty()) return;
  if (auto values = stated_values(last_error_sentence(pasted))) {
    messages[0].expected = std::move(values->expected);
    messages[0].found = std::move(values->found);
  }
}

ErrorText read_messages(std::string_view text) {
  static const PatternIndex index = make_index();
  ErrorText result;
  if (text.size() > kMaxErrorText) {
    text.remove_prefix(text.size() - kMaxErrorText);  // a traceback ends with its error
    result.cut = true;
  }
  const PastedText pasted = pasted_text(text);
  Collector collector{result};
  for (std::size_t at = 0; at + kLetters <= pasted.lower.size();) {
    auto entries = index.find(std::string_view(pasted.lower).substr(at, kLetters));
    auto found = entries == index.end() ? std::nullopt : message_at(pasted, at, entries->second);
    if (!found) {
      ++at;
      continue;
    }
    for (std::string& name : found->names) {
      ErrorMessage one = found->message;
      one.name = std::move(name);
      collector.add(std::move(one));
    }
    if (found->names.empty()) collector.add(std::move(found->message));
    at = std::max(found->end, at + 1);
  }
  drop_general_messages(result.messages);
  if (is_key_error_with_sentence(result.messages)) {
    if (auto read = read_general(pasted, kMaxMessages); !read.empty()) result.messages = read;
  } else if (is_generic_python_error(result.messages)) {
    if (const MessageKind* kind = traceback_kind(pasted.lower))
      result.messages = {ErrorMessage{kind, result.messages.front().name, {}, {}}};
  }
  if (!result.messages.empty()) return result;
  if (const std::string key = insert_key_error(pasted); !key.empty()) return read_messages(key);
  // For unknown prose, single words are not enough evidence.
  for (ErrorMessage& message : read_general(pasted, kMaxMessages))
    collector.add(std::move(message));
  return result;
}

// Only what stands from the first traceback on: programs warn of other things before they fail.
// Empty if there is no text before it, or if the traceback alone tells little.
ErrorText read_traceback(std::string_view text) {
  const std::size_t first = text.find("Traceback (most recent call last)");
  if (first == text.npos || first == 0) return {};
  ErrorText result = read_messages(text.substr(first));
  const bool tells_much =
      std::any_of(result.messages.begin(), result.messages.end(), [](const ErrorMessage& message) {
        return message.kind->certainty != MessageCertainty::kOnlyFailure &&
               !message.kind->traceback_says_more;
      });
  return tells_much ? result : ErrorText{};
}

}  // namespace

ErrorText parse_error_text(std::string_view text) {
  // Python's destructors complain after the error, about objects that were never made. The error
  // may also come after such a complaint.
  const std::size_t ignored = text.find("\nException ignored in");
  if (ignored != text.npos && text.find("Error(s) in", ignored) == text.npos &&
      !read_messages(text.substr(0, ignored)).messages.empty())
    text = text.substr(0, ignored);
  ErrorText result = read_traceback(text);
  if (result.messages.empty()) result = read_messages(text);
  if (result.messages.empty()) return result;
  if (text.size() > kMaxErrorText) text.remove_prefix(text.size() - kMaxErrorText);
  add_program_and_stated_values(pasted_text(text), result.messages);
  return result;
}

}  // namespace shw
