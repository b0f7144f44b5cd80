#include "core/explain/stated_values.h"

#include <algorithm>
#include <array>

#include "core/base/letter_case.h"

namespace shw {
namespace {

constexpr std::size_t kMaxReadOfSentence = 500;
constexpr std::size_t kLongestValue = 80;

// Words before the value that the program asks for, longer ones first.
constexpr std::array<std::string_view, 25> kAsks = {
    "expected to be ", "is expected to ",    "expected ",
    "expects ",        "expecting ",         "must be ",
    "must have ",      "must equal ",        "must match ",
    "should be ",      "should have ",       "should equal ",
    "requires ",       "required ",          "needs ",
    "only supports ",  "only support ",      "want ",
    "current model ",  "runtime=",           "the model has ",
    "model expects ",  "should start with ", "must start with ",
    "must end with "};
// Words before the value that was given to it.
constexpr std::array<std::string_view, 19> kSubmitted = {"but received ",
                                                         "but found ",
                                                         "but got ",
                                                         "but is ",
                                                         "but was ",
                                                         "but has ",
                                                         "but had ",
                                                         "found ",
                                                         "received ",
                                                         "got ",
                                                         "actual ",
                                                         "given ",
                                                         "instead of ",
                                                         "observed ",
                                                         "but loaded ",
                                                         "but it is ",
                                                         "saved=",
                                                         "checkpoint has ",
                                                         "but the checkpoint has "};
// Words that begin a value and are not part of it.
constexpr std::array<std::string_view, 14> kFillers = {
    "to be ", "to have ", "exactly ", "a value of ", "value ",  "of type ", "type ",
    "a ",     "an ",      "the ",     "be ",         "one of ", "shape ",   "dtype "};
// A value ends before the first of these texts.
constexpr std::array<std::string_view, 17> kEnds = {
    ", but", ", got", ", found", ", received", ", actual", ", saved", " but ",   " got ",     ";",
    ". ",    " for ", " from ",  " instead",   " in the ", " vs ",    " while ", ", expected"};

// "was not found", "to be loaded": the verb of a sentence, before no value.
constexpr std::array<std::string_view, 6> kBeforeVerbs = {"not ", "be ",   "is ",
                                                          "was ", "were ", "are "};
// If the text after a value begins with one of these, the sentence continues and the value does not
// end there.
constexpr std::array<std::string_view, 3> kNotLast = {" not", " be", " were"};

struct Lead {
  std::size_t begin = std::string_view::npos, end = 0;
  bool is_found() const { return begin != std::string_view::npos; }
};

bool is_letter(char c) {
  return c >= 'a' && c <= 'z';
}

// True for "found " in "was not found in".
bool is_verb(std::string_view before, std::string_view lead) {
  constexpr std::array<std::string_view, 3> kParticiples = {"found ", "received ", "given "};
  return std::ranges::find(kParticiples, lead) != kParticiples.end() &&
         std::ranges::any_of(kBeforeVerbs, [&](std::string_view word) {
           const bool ends = before.ends_with(word);
           return ends && (before.size() == word.size() ||
                           !is_letter(before[before.size() - word.size() - 1]));
         });
}

// The first occurrence of one of the words, but not inside a longer word ("got" in "forgot").
template <std::size_t N>
Lead first_lead(std::string_view text, const std::array<std::string_view, N>& words,
                std::size_t from) {
  Lead first;
  for (std::string_view word : words) {
    for (std::size_t at = text.find(word, from); at != text.npos; at = text.find(word, at + 1)) {
      if (at != 0 && is_letter(text[at - 1])) continue;
      if (is_verb(text.substr(0, at), word)) continue;
      if (at < first.begin) first = {at, at + word.size()};
      break;
    }
  }
  return first;
}

bool is_value_delimiter(char c) {
  return std::string_view(" \n:=,`'\"").find(c) != std::string_view::npos;
}

void trim(std::string_view& value) {
  while (!value.empty() && is_value_delimiter(value.front())) value.remove_prefix(1);
  while (!value.empty() &&
         (is_value_delimiter(value.back()) || value.back() == '.' || value.back() == '('))
    value.remove_suffix(1);
}

// The value between two positions of the sentence, as written there; empty if it is a whole clause.
std::string value_between(std::string_view text, std::string_view lower, std::size_t begin,
                          std::size_t end) {
  std::size_t stop = std::min(end, lower.find('\n', begin));
  for (std::string_view word : kEnds) stop = std::min(stop, lower.find(word, begin));
  std::string_view value = text.substr(begin, std::min(stop, text.size()) - begin);
  trim(value);
  for (bool again = true; again;) {
    again = false;
    for (std::string_view filler : kFillers) {
      if (!value.starts_with(filler)) continue;
      value.remove_prefix(filler.size());
      again = true;
    }
    trim(value);
  }
  const auto words = std::count(value.begin(), value.end(), ' ');
  const bool has_number = std::any_of(value.begin(), value.end(), is_digit);
  if (value.size() > kLongestValue || (words > 4 && !has_number)) return {};
  if (std::ranges::any_of(kNotLast, [&](std::string_view last) { return value.ends_with(last); }))
    return {};
  return std::string(value);
}

}  // namespace

std::optional<StatedValues> stated_values(std::string_view sentence) {
  const std::string_view text = sentence.substr(0, kMaxReadOfSentence);
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  const Lead asked = first_lead(lower, kAsks, 0);
  if (!asked.is_found()) return std::nullopt;
  Lead given = first_lead(lower, kSubmitted, asked.end);
  const bool is_asked_first = given.is_found();
  if (!is_asked_first) given = first_lead(lower, kSubmitted, 0);
  if (!given.is_found() || given.begin == asked.begin) return std::nullopt;
  StatedValues values{
      value_between(text, lower, asked.end, is_asked_first ? given.begin : text.size()),
      value_between(text, lower, given.end, is_asked_first ? text.size() : asked.begin)};
  if (values.expected.empty() || values.found.empty() || values.expected == values.found)
    return std::nullopt;
  return values;
}

}  // namespace shw
