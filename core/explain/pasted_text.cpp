#include "core/explain/pasted_text.h"

#include <algorithm>

namespace shw {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

std::size_t end_of_terminal_escape(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size() || text[at + 1] != '[') return at + 1;
  for (at += 2; at < text.size(); ++at) {
    if (text[at] >= '@' && text[at] <= '~') return at + 1;
  }
  return at;
}

// Compares with a shape in which 0 stands for any digit: "0000-00-00".
bool starts_with_digit_template(std::string_view text, std::string_view shape) {
  if (text.size() < shape.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == '0' ? !is_digit(text[i]) : text[i] != shape[i]) return false;
  }
  return true;
}

// Length of "[rank3]:", "[default0]:", "[0]:" (torchrun) or "3: " (srun); 0 if absent.
std::size_t rank_prefix(std::string_view text) {
  std::size_t at = 0;
  bool bracket = text.starts_with("[");
  for (std::string_view word : {"[rank", "[default", "["}) {
    if (!text.starts_with(word)) continue;
    at = word.size();
    break;
  }
  std::size_t first = at;
  while (at < text.size() && at < first + 7 && is_digit(text[at])) ++at;
  if (at == first) return 0;
  if (bracket) return text.substr(at).starts_with("]:") ? at + 2 : 0;
  return text.substr(at).starts_with(": ") ? at + 2 : 0;
}

// Length of "2026-11-21T03:14:15,123Z" or "03:14:15"; 0 if absent.
std::size_t time_prefix(std::string_view text) {
  std::size_t at = 0;
  if (starts_with_digit_template(text, "0000-00-00")) at = 11;
  if (at > text.size() || !starts_with_digit_template(text.substr(at), "00:00:00")) return 0;
  at += 8;
  while (at < text.size() && (is_digit(text[at]) || text[at] == '.' || text[at] == ',')) ++at;
  if (at < text.size() && text[at] == 'Z') ++at;
  return at;
}

// Length of a bracketed time, as servers log it: "[2026-02-14 07:48:15 TP6]"; 0 if absent.
std::size_t bracketed_time_prefix(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  if (!text.starts_with("[")) return 0;
  const std::size_t end = text.substr(0, kLongest).find(']');
  if (end == text.npos) return 0;
  for (std::string_view shape : {"0000-00-00", "00/00/0000", "00:00:00", "0000/00/00"}) {
    if (starts_with_digit_template(text.substr(1), shape)) return end + 1;
  }
  return 0;
}

// Length of "(WorkerDict pid=17, ip=10.0.0.1)" (Ray) or "(EngineCore_0 pid=33)"; 0 if absent.
std::size_t process_prefix(std::string_view text) {
  constexpr std::size_t kLongest = 100;
  if (!text.starts_with("(")) return 0;
  const std::string_view start = text.substr(0, kLongest);
  const std::size_t end = start.find(')');
  return end != start.npos && start.substr(0, end).find("pid=") != start.npos ? end + 1 : 0;
}

// Length of "trainer-04-1  |", a container's name in the logs of Docker Compose; 0 if absent.
std::size_t container_prefix(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::size_t at = 0;
  while (at < std::min(text.size(), kLongest) &&
         (is_digit(text[at]) || text[at] == '-' || text[at] == '_' ||
          (text[at] >= 'a' && text[at] <= 'z')))
    ++at;
  const bool is_numbered =
      at > 2 && is_digit(text[at - 1]) && text.substr(0, at).rfind('-') != text.npos;
  if (!is_numbered) return 0;
  while (at < text.size() && text[at] == ' ') ++at;
  return text.substr(at).starts_with("| ") ? at + 2 : 0;
}

// Length of "ERROR 08-22 10:01:44 [core.py:700]", as vLLM logs each line; 0 if absent.
std::size_t level_prefix(std::string_view text) {
  constexpr std::size_t kLongest = 90;
  for (std::string_view level : {"ERROR ", "WARNING ", "INFO ", "CRITICAL "}) {
    if (!text.starts_with(level) ||
        !starts_with_digit_template(text.substr(level.size()), "00-00 00:00:00"))
      continue;
    const std::size_t end = text.substr(0, kLongest).find(']');
    return end == text.npos ? 0 : end + 1;
  }
  return 0;
}

std::size_t log_prefix(std::string_view text) {
  return std::max({rank_prefix(text), time_prefix(text), bracketed_time_prefix(text),
                   process_prefix(text), container_prefix(text), level_prefix(text)});
}

// Skips prefixes of launchers, log collectors and exception groups.
std::size_t after_prefix(std::string_view text, std::size_t at) {
  constexpr std::string_view kBar = "\u2502";  // of rich tracebacks
  while (at < text.size()) {
    std::string_view rest = text.substr(at);
    if (std::string_view(" \t|>").find(rest[0]) != std::string_view::npos) {
      ++at;
    } else if (rest.starts_with(kBar)) {
      at += kBar.size();
    } else if (std::size_t length = log_prefix(rest); length != 0) {
      at += length;
    } else {
      break;
    }
  }
  return at;
}

// True for escaped "\n" and "\t" of JSON logs or reprs.
bool escaped_space(std::string_view text, std::size_t at) {
  return text[at] == '\\' && at + 1 < text.size() && (text[at + 1] == 'n' || text[at + 1] == 't');
}

void add_space(std::string& out, bool newline) {
  if (out.empty()) return;
  if (out.back() != ' ' && out.back() != '\n') {
    out += newline ? '\n' : ' ';
  } else if (newline) {
    out.back() = '\n';
  }
}

}  // namespace

PastedText pasted_text(std::string_view text) {
  PastedText pasted;
  std::string& out = pasted.text;
  out.reserve(text.size());
  for (std::size_t at = after_prefix(text, 0); at < text.size();) {
    char c = text[at];
    if (c == '\x1b') {
      at = end_of_terminal_escape(text, at);
    } else if (bool escaped = escaped_space(text, at); escaped || is_space(c)) {
      bool newline = c == '\n' || (escaped && text[at + 1] == 'n');
      add_space(out, newline);
      at += escaped ? 2 : 1;
      if (newline) at = after_prefix(text, at);
    } else if (c == '\\' && at + 1 < text.size() && text[at + 1] == '"') {
      ++at;
    } else {
      out += c;
      ++at;
    }
  }
  pasted.lower = out;
  for (char& c : pasted.lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return pasted;
}

}  // namespace shw
