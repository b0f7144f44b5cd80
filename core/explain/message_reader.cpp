#include "core/explain/message_reader.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/base/checked.h"
#include "core/explain/pasted_text.h"

namespace shw {
namespace {

constexpr std::size_t kMaxName = 1024;
constexpr std::size_t kGap = 24;  // characters between "saved" and its shape
constexpr std::string_view kQuotes = "\"'`";

bool is_gap(char c) {
  return c == ' ' || c == '\n';
}
bool is_quote(char c) {
  return kQuotes.find(c) != kQuotes.npos;
}
bool starts_at(std::string_view text, std::size_t at, std::string_view word) {
  return at <= text.size() && text.substr(at).starts_with(word);
}

void skip_gaps(std::string_view text, std::size_t& at) {
  while (at < text.size() && is_gap(text[at])) ++at;
}

// Line wraps may split any word: "torch.Si\nze".
bool read_literal(std::string_view text, std::size_t& at, std::string_view words) {
  std::size_t here = at;
  for (char c : words) {
    if (c == ' ') {
      if (here >= text.size() || !is_gap(text[here])) return false;
    } else {
      while (here < text.size() && text[here] == '\n') ++here;
      if (here >= text.size() || text[here] != c) return false;
    }
    ++here;
  }
  at = here;
  return true;
}

// Shapes have commas between their numbers, so a line break inside one is a wrap: "40\n96".
enum class Wraps : bool { kLineBreakEndsNumber, kSkipLineBreaks };

std::optional<std::int64_t> read_number(std::string_view text, std::size_t& at,
                                        Wraps wraps = Wraps::kLineBreakEndsNumber) {
  if (at >= text.size() || !is_digit(text[at])) return std::nullopt;
  auto is_wrap = [&] {
    return wraps == Wraps::kSkipLineBreaks && text[at] == '\n' && at + 1 < text.size() &&
           is_digit(text[at + 1]);
  };
  std::int64_t value = 0;
  for (; at < text.size() && (is_digit(text[at]) || is_wrap()); ++at) {
    if (text[at] == '\n') continue;
    auto tenfold = checked_mul<std::int64_t>(value, 10);
    if (!tenfold) return std::nullopt;
    auto next = checked_add<std::int64_t>(*tenfold, text[at] - '0');
    if (!next) return std::nullopt;
    value = *next;
  }
  return value;
}

// "[64]", "(64,)", "torch.Size([64, 2])", "(torch.Size([64]))": one flat list in any nesting.
std::optional<Extents> read_shape(std::string_view text, std::size_t& at) {
  std::size_t here = at, depth = 0;
  std::array<char, 8> closers{};
  for (;; ++here) {
    skip_gaps(text, here);
    read_literal(text, here, "torch.size") || read_literal(text, here, "size");
    skip_gaps(text, here);
    if (here >= text.size() || (text[here] != '(' && text[here] != '[')) break;
    if (depth == closers.size()) return std::nullopt;
    closers[depth++] = text[here] == '(' ? ')' : ']';
  }
  if (depth == 0) return std::nullopt;
  Extents extents;
  while (here < text.size() && is_digit(text[here])) {
    auto extent = read_number(text, here, Wraps::kSkipLineBreaks);
    if (!extent || extents.size() == kMaxDims) return std::nullopt;
    extents.push_back(*extent);
    skip_gaps(text, here);
    if (here < text.size() && text[here] == ',') ++here;
    skip_gaps(text, here);
  }
  while (depth > 0) {
    skip_gaps(text, here);
    if (here >= text.size() || text[here] != closers[--depth]) return std::nullopt;
    ++here;
  }
  at = here;
  return extents;
}

// The size in "tensor(..., device='meta', size=(320, 320))"; `at` for anything else.
std::size_t skip_to_size_in_repr(std::string_view text, std::size_t at) {
  constexpr std::string_view kRepr = "(..., device=", kSize = "size=";
  if (!starts_at(text, at, kRepr)) return at;
  std::size_t size = text.substr(at, 4 * kGap).find(kSize);
  return size == text.npos ? at : at + size + kSize.size();
}

// The next shape within kGap characters, without other digits or letters of a list before it.
std::optional<Extents> find_next_shape(std::string_view text, std::size_t& at) {
  std::size_t end = std::min(text.size(), at + kGap);
  for (std::size_t here = at; here < end; ++here) {
    char c = text[here];
    if (c == '(' || c == '[') {
      at = skip_to_size_in_repr(text, here);
      const bool is_repr = at != here;
      auto shape = read_shape(text, at);
      if (shape && is_repr && starts_at(text, at, ")")) ++at;
      return shape;
    }
    if (is_digit(c) || c == ')' || c == ']') return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::int64_t> find_next_number(std::string_view text, std::size_t& at) {
  std::size_t end = std::min(text.size(), at + kGap);
  while (at < end && !is_digit(text[at])) ++at;
  return read_number(text, at);
}

// "4096, 32000, 1, 1": what ggml prints, innermost first and padded with ones.
std::optional<Extents> read_ggml_shape(std::string_view text, std::size_t& at) {
  std::vector<std::int64_t> numbers;
  for (;;) {
    skip_gaps(text, at);
    auto number = read_number(text, at);
    if (!number || numbers.size() == kMaxDims) return std::nullopt;
    numbers.push_back(*number);
    std::size_t next = at;
    if (next >= text.size() || text[next] != ',') break;
    skip_gaps(text, ++next);
    if (next >= text.size() || !is_digit(text[next])) break;
    at = next;
  }
  while (numbers.size() > 1 && numbers.back() == 1) numbers.pop_back();
  Extents extents;
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number)
    extents.push_back(*number);
  return extents;
}

// Up to the closing quote; line breaks inside are line wraps.
std::optional<std::string> read_quoted(std::string_view text, std::size_t& at) {
  std::size_t end = text.substr(at + 1, kMaxName).find(text[at]);
  if (end == text.npos) return std::nullopt;
  std::string name(text.substr(at + 1, end));
  name.erase(std::remove(name.begin(), name.end(), '\n'), name.end());
  at += end + 2;
  return name;
}

// A name in a sentence, without quotes and trailing punctuation.
std::string read_name(std::string_view text, std::size_t& at) {
  skip_gaps(text, at);
  if (at < text.size() && is_quote(text[at])) {
    if (auto quoted = read_quoted(text, at)) return *quoted;
    ++at;
  }
  std::size_t end = at;
  while (end < text.size() && end - at < kMaxName && !is_gap(text[end]) && text[end] != ',' &&
         text[end] != ';' && !is_quote(text[end]))
    ++end;
  std::string_view name = text.substr(at, end - at);
  at = end;
  while (!name.empty() && std::string_view(".:!?)]}").find(name.back()) != std::string_view::npos)
    name.remove_suffix(1);
  return std::string(name);
}

// The word before, as in "- X: found shape ..." and "X | MISSING |"; names merged by transformers
// contain spaces in braces: "layers.{0, 1}.weight".
std::string name_before(std::string_view text, std::size_t begin) {
  std::size_t from = begin > kMaxName ? begin - kMaxName : 0;
  std::string_view before = text.substr(from, begin - from);
  while (!before.empty() && (is_gap(before.back()) || before.back() == ':' || before.back() == '|'))
    before.remove_suffix(1);
  std::size_t space = before.find_last_of(" \n");
  std::size_t close = before.rfind('}'), open = before.rfind('{');
  if (space != before.npos && close != before.npos && open != before.npos && open < space &&
      space < close)
    return std::string(before.substr(before.find_last_of(" \n", open) + 1));
  std::string_view word = before.substr(space == before.npos ? 0 : space + 1);
  if (word.find("'{") != word.npos || word.find("\"{") != word.npos) return std::string(word);
  std::size_t at = from + before.size() - word.size();
  return read_name(text.substr(0, from + before.size()), at);
}

std::string name_after(const PastedText& pasted, std::size_t& at) {
  constexpr std::array<std::string_view, 6> kBefore = {"tensor for key ", "for key ", "for tensor ",
                                                       "for parameter ",  "for ",     "tensor "};
  std::size_t here = at;
  skip_gaps(pasted.lower, here);
  for (std::string_view words : kBefore) {
    if (!read_literal(pasted.lower, here, words)) continue;
    at = here;
    return read_name(pasted.text, at);
  }
  return "";
}

// Names without quotes, one per line, if they are valid paths.
bool is_path(std::string_view name) {
  return name.find('.') != name.npos || name.find('_') != name.npos;
}

// Begin of a list: "dict_keys([", "{", "- ".
void skip_list_begin(std::string_view text, std::size_t& at) {
  skip_gaps(text, at);
  for (std::string_view open : {"dict_keys(", "odict_keys(", "set("}) {
    if (starts_at(text, at, open)) at += open.size();
  }
  while (at < text.size() && (text[at] == '[' || text[at] == '{' || text[at] == '(')) ++at;
}

// "a.weight b.weight": names of tensors without commas between them.
bool begins_tensor_name_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && !is_gap(text[end])) ++end;
  std::string_view word = text.substr(at, end - at);
  while (!word.empty() && word.back() == '.') word.remove_suffix(1);
  for (std::string_view last : {".weight", ".bias", ".scales", ".biases"}) {
    if (word.ends_with(last)) return true;
  }
  return false;
}

bool is_bullet(std::string_view text, std::size_t at) {
  return at < text.size() && (text[at] == '-' || text[at] == '*');
}

// "a", "b", "c" with or without brackets, and lines "- a".
std::vector<std::string> read_names(std::string_view text, std::size_t& at) {
  std::vector<std::string> names;
  skip_list_begin(text, at);
  for (;;) {
    skip_gaps(text, at);
    if (is_bullet(text, at)) skip_gaps(text, ++at);
    if (at >= text.size()) return names;
    std::size_t before = at;
    bool quoted = is_quote(text[at]);
    std::string name = read_name(text, at);
    const bool is_empty_name = quoted && name.empty() && at < text.size() && text[at] == ',';
    if (is_empty_name) {  // a loader that cut a name to nothing
      ++at;
      continue;
    }
    if (name.empty() || (!quoted && !is_path(name))) {
      at = before;
      return names;
    }
    names.push_back(std::move(name));
    std::size_t next = at;
    skip_gaps(text, next);
    bool comma = next < text.size() && text[next] == ',';
    if (!comma && !is_bullet(text, next) && !begins_tensor_name_at(text, next)) return names;
    at = next + (comma ? 1 : 0);
  }
}

// The literal part of a pattern up to its next token, and the token.
struct Step {
  std::string_view literal, token;
};
Step next_step(std::string_view& pattern) {
  std::size_t at = pattern.find_first_of("<~");
  Step step{pattern.substr(0, at), {}};
  if (at == pattern.npos) {
    pattern = {};
    return step;
  }
  std::size_t end = pattern[at] == '~' ? at : pattern.find('>', at);
  step.token = pattern.substr(at, end + 1 - at);
  pattern.remove_prefix(end + 1);
  return step;
}

bool skip_to_literal(std::string_view text, std::size_t& at, std::string_view words) {
  for (std::size_t here = at; here <= at + 2 * kGap && here < text.size(); ++here) {
    if (!read_literal(text, here, words)) continue;
    at = here;
    return true;
  }
  return false;
}

struct Reading {
  const PastedText& pasted;
  std::size_t begin, at;
  FoundMessage found;
};

bool keep(std::optional<Extents> shape, Extents& into) {
  if (!shape) return false;
  into = std::move(*shape);
  return true;
}

bool read_token(Reading& reading, std::string_view token) {
  const PastedText& pasted = reading.pasted;
  ErrorMessage& message = reading.found.message;
  if (token.empty() || token == "~") return true;
  if (token == "<saved>") return keep(find_next_shape(pasted.lower, reading.at), message.saved);
  if (token == "<current>") return keep(find_next_shape(pasted.lower, reading.at), message.current);
  if (token == "<ggml_saved>")
    return keep(read_ggml_shape(pasted.lower, reading.at), message.saved);
  if (token == "<ggml_current>")
    return keep(read_ggml_shape(pasted.lower, reading.at), message.current);
  if (token.starts_with("<#") || token == "<numel>") {
    auto number = find_next_number(pasted.lower, reading.at);
    if (!number) return false;
    if (token == "<numel>") {
      message.saved = {*number};
    } else {
      message.numbers.emplace_back(token.substr(2, token.size() - 3), *number);
    }
    return true;
  }
  if (token == "<for>") {
    message.name = name_after(pasted, reading.at);
    return true;
  }
  if (token == "<names>") {
    reading.found.names = read_names(pasted.text, reading.at);
    return !reading.found.names.empty();
  }
  message.name = token == "<before>" ? name_before(pasted.text, reading.begin)
                                     : read_name(pasted.text, reading.at);
  return !message.name.empty();
}

}  // namespace

std::string_view literal_prefix_of_pattern(std::string_view pattern) {
  if (pattern.starts_with("<before>")) pattern.remove_prefix(8);
  return pattern.substr(0, pattern.find_first_of("<~"));
}

std::optional<FoundMessage> read_message(const PastedText& pasted, std::size_t begin,
                                         std::string_view pattern) {
  Reading reading{pasted, begin, begin, {}};
  if (pattern.starts_with("<before>")) {
    pattern.remove_prefix(8);
    // The name in front of the match is read after the whole pattern has matched, because most
    // candidates fail before that.
    reading.found.message.name = "?";
  }
  bool gap = false;
  while (!pattern.empty()) {
    Step step = next_step(pattern);
    bool fits = gap && !step.literal.empty()
                    ? skip_to_literal(pasted.lower, reading.at, step.literal)
                    : read_literal(pasted.lower, reading.at, step.literal);
    if (!fits || !read_token(reading, step.token)) return std::nullopt;
    gap = step.token == "~";
  }
  if (reading.found.message.name == "?" && !read_token(reading, "<before>")) return std::nullopt;
  reading.found.end = reading.at;
  return std::move(reading.found);
}

}  // namespace shw
