#include "core/explain/general_kinds.h"

#include <algorithm>
#include <string>
#include <vector>

namespace shw {
namespace {

std::vector<const MessageKind*> message_kinds_with_words(bool matches_in_traceback) {
  std::vector<const MessageKind*> rows = message_kinds();
  std::erase_if(rows, [&](const MessageKind* kind) {
    return kind->words == nullptr || kind->words->matches_in_traceback != matches_in_traceback;
  });
  return rows;
}

bool is_in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

// True if the text contains the word; "|word" only where no letter, digit or '_' is before it.
bool contains_word(std::string_view text, std::string_view word) {
  const bool begins = word.starts_with('|');
  if (begins) word.remove_prefix(1);
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    if (!begins || at == 0 || !is_in_word(text[at - 1])) return true;
  }
  return false;
}

// A row that says only that something failed comes after all others.
const MessageKind* first_matching_kind(const std::vector<const MessageKind*>& rows,
                                       std::string_view text) {
  auto has_one = [&](const std::vector<std::string_view>& words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return contains_word(text, word); });
  };
  const MessageKind* vague = nullptr;
  for (const MessageKind* kind : rows) {
    const MessageWords& words = *kind->words;
    const bool is_certain = kind->certainty == MessageCertainty::kSaysWhatFailed;
    if (!is_certain && vague != nullptr) continue;
    if (!std::all_of(words.all.begin(), words.all.end(), has_one) || has_one(words.none)) continue;
    if (is_certain) return kind;
    vague = kind;
  }
  return vague;
}

// The two lines above the last error, where a traceback was pasted without its "file" lines. Empty
// if they are not code.
std::string_view code_above_error(std::string_view text) {
  const std::size_t error = text.rfind("error");
  const std::size_t end = error == text.npos ? error : text.substr(0, error).rfind('\n');
  // "state_dict['param_groups'] TypeError: ...": code in the line of the error.
  const std::string_view line_of_error =
      error == text.npos ? text.substr(0, 0)
                         : text.substr(0, error).substr(end == text.npos ? 0 : end + 1);
  if (line_of_error.find("['") != text.npos || line_of_error.find("[\"") != text.npos)
    return line_of_error;
  if (end == text.npos || end == 0) return {};
  const std::size_t line = text.rfind('\n', end - 1);
  const std::size_t begin = line == text.npos || line == 0 ? text.npos : text.rfind('\n', line - 1);
  const std::string_view code = text.substr(0, end).substr(begin == text.npos ? 0 : begin + 1);
  return code.find_first_of("([=") == code.npos ? std::string_view() : code;
}

// A notebook marks the line that failed: "----> 8 model = load()". The innermost that a row fits.
const MessageKind* kind_of_marked_notebook_line(const std::vector<const MessageKind*>& rows,
                                                std::string_view text) {
  for (std::size_t end = text.size(); end != 0;) {
    const std::size_t at = text.substr(0, end).rfind("--> ");
    if (at == text.npos) break;
    end = at;
    const std::string_view line = text.substr(at, text.substr(at).find('\n'));
    if (const MessageKind* kind = first_matching_kind(rows, line)) return kind;
  }
  return nullptr;
}

}  // namespace

const MessageKind* match_general_kind(std::string_view sentence) {
  static const std::vector<const MessageKind*> rows = message_kinds_with_words(false);
  std::string text(sentence);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return first_matching_kind(rows, text);
}

const MessageKind* traceback_kind(std::string_view text) {
  static const std::vector<const MessageKind*> rows = message_kinds_with_words(true);
  if (text.find("file \"") == text.npos) {
    if (const MessageKind* kind = kind_of_marked_notebook_line(rows, text)) return kind;
    const std::string_view code = code_above_error(text);
    return code.empty() ? nullptr : first_matching_kind(rows, code);
  }
  // A place is a line `file "/x/y.py", line 7, in f` and the line of code after it.
  for (std::size_t end = text.size(); end != 0;) {
    const std::size_t at = text.substr(0, end).rfind("file ");
    if (at == text.npos) break;
    end = at;
    if (at != 0 && text[at - 1] != '\n') continue;
    const std::size_t line = text.find('\n', at);
    const std::size_t code = line == text.npos ? line : text.find('\n', line + 1);
    const std::string_view place = text.substr(at, code == text.npos ? code : code - at);
    if (place.find(".py") == place.npos) continue;
    if (const MessageKind* kind = first_matching_kind(rows, place)) return kind;
  }
  return nullptr;
}

}  // namespace shw
