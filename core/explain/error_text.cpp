#include "core/explain/error_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "core/base/checked.h"

namespace shw {
namespace {

constexpr std::size_t kMaxName = 1024;
constexpr std::size_t kGap = 24;  // from "saved" to its shape, from one shape to "current"

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t after_escape(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size() || text[at + 1] != '[') return at + 1;
  for (at += 2; at < text.size(); ++at) {
    if (text[at] >= '@' && text[at] <= '~') return at + 1;
  }
  return at;
}

// "[rank3]:[rank3]: " and "| " at the start of a line, as torchrun and tracebacks of groups put it.
std::size_t after_prefix(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    if (text[at] == ' ' || text[at] == '\t' || text[at] == '|' || text[at] == '>') {
      ++at;
      continue;
    }
    if (!text.substr(at).starts_with("[rank")) break;
    std::size_t end = at + 5;
    while (end < text.size() && end < at + 15 && is_digit(text[end])) ++end;
    if (!text.substr(end).starts_with("]:")) break;
    at = end + 2;
  }
  return at;
}

// One line, single spaces, no colours, no prefixes: messages that were wrapped are whole again.
std::string flattened(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = after_prefix(text, 0); at < text.size();) {
    char c = text[at];
    if (c == '\x1b') {
      at = after_escape(text, at);
    } else if (is_space(c)) {
      if (!out.empty() && out.back() != ' ') out += ' ';
      ++at;
      if (c == '\n') at = after_prefix(text, at);
    } else {
      out += c;
      ++at;
    }
  }
  return out;
}

struct Source {
  std::string text, lower;
};

void skip_spaces(std::string_view text, std::size_t& at) {
  while (at < text.size() && text[at] == ' ') ++at;
}

std::optional<std::int64_t> read_number(std::string_view text, std::size_t& at) {
  if (at >= text.size() || !is_digit(text[at])) return std::nullopt;
  std::int64_t value = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    auto tenfold = checked_mul<std::int64_t>(value, 10);
    if (!tenfold) return std::nullopt;
    auto next = checked_add<std::int64_t>(*tenfold, text[at] - '0');
    if (!next) return std::nullopt;
    value = *next;
  }
  return value;
}

// "[64]", "(64,)", "torch.Size([64, 2])", "(torch.Size([64]))": any nesting around one flat list.
std::optional<Extents> read_shape(const Source& source, std::size_t& at) {
  std::string_view text = source.lower;
  std::size_t here = at, depth = 0;
  std::array<char, 8> closers{};
  for (;; ++here) {
    skip_spaces(text, here);
    if (text.substr(here).starts_with("torch.size")) here += 10;
    if (text.substr(here).starts_with("size")) here += 4;
    skip_spaces(text, here);
    if (here >= text.size() || (text[here] != '(' && text[here] != '[')) break;
    if (depth == closers.size()) return std::nullopt;
    closers[depth++] = text[here] == '(' ? ')' : ']';
  }
  if (depth == 0) return std::nullopt;
  Extents extents;
  while (here < text.size() && is_digit(text[here])) {
    auto extent = read_number(text, here);
    if (!extent || extents.size() == kMaxDims) return std::nullopt;
    extents.push_back(*extent);
    skip_spaces(text, here);
    if (here < text.size() && text[here] == ',') ++here;
    skip_spaces(text, here);
  }
  while (depth > 0) {
    skip_spaces(text, here);
    if (here >= text.size() || text[here] != closers[--depth]) return std::nullopt;
    ++here;
  }
  at = here;
  return extents;
}

// The shape that begins within kGap characters, no digit or letter soup of another list before it.
std::optional<Extents> seek_shape(const Source& source, std::size_t& at) {
  std::string_view text = source.lower;
  std::size_t end = std::min(text.size(), at + kGap);
  for (std::size_t here = at; here < end; ++here) {
    char c = text[here];
    if (c == '(' || c == '[') {
      std::size_t next = here;
      auto shape = read_shape(source, next);
      if (shape) at = next;
      return shape;
    }
    if (is_digit(c) || c == ')' || c == ']') return std::nullopt;
  }
  return std::nullopt;
}

// A name as it stands in a sentence: without quotes around it and punctuation behind it.
std::string read_name(std::string_view text, std::size_t at) {
  constexpr std::string_view kQuotes = "\"'`";
  while (at < text.size() && (text[at] == ' ' || kQuotes.find(text[at]) != kQuotes.npos)) ++at;
  std::size_t end = at;
  while (end < text.size() && end - at < kMaxName && text[end] != ' ' && text[end] != ',' &&
         text[end] != ';' && kQuotes.find(text[end]) == kQuotes.npos)
    ++end;
  std::string_view name = text.substr(at, end - at);
  while (!name.empty() && std::string_view(".:!?)]}").find(name.back()) != std::string_view::npos)
    name.remove_suffix(1);
  return std::string(name);
}

bool starts_at(std::string_view text, std::size_t at, std::string_view word) {
  return at <= text.size() && text.substr(at).starts_with(word);
}

struct Found {
  std::size_t begin = 0, end = 0;
  ErrorMessage message;
};

// "size mismatch for X: copying a param ...", "- X: found shape ...".
std::string name_before(const Source& source, std::size_t begin) {
  constexpr std::string_view kFor = "size mismatch for ";
  std::size_t from = begin > kMaxName + 64 ? begin - kMaxName - 64 : 0;
  std::string_view before = std::string_view(source.lower).substr(from, begin - from);
  std::size_t at = before.rfind(kFor);
  if (at != before.npos) return read_name(source.text, from + at + kFor.size());
  while (!before.empty() && (before.back() == ' ' || before.back() == ':')) before.remove_suffix(1);
  at = before.rfind(' ');
  if (before.size() + from == begin) return "";  // no colon: the word before is no name
  return read_name(source.text, from + (at == before.npos ? 0 : at + 1));
}

std::string name_after(const Source& source, std::size_t at) {
  std::string_view text = source.lower;
  skip_spaces(text, at);
  constexpr std::array<std::string_view, 5> kBefore = {"tensor for key ", "for key ", "for tensor ",
                                                       "for ", "tensor "};
  for (std::string_view words : kBefore) {
    if (starts_at(text, at, words)) return read_name(source.text, at + words.size());
  }
  return "";
}

struct ShapePair {
  std::string_view first, second;
  bool named_before = false;
};
constexpr std::array<ShapePair, 7> kShapePairs = {{
    {"copying a param with shape", "current model", true},
    {"found shape", "checkpoint and", true},
    {"saved", "current"},
    {"loaded", "expected"},
    {"saved", "expected"},
    {"saved", "requested"},
    {"checkpoint", "model"},
}};

std::optional<Found> pair_at(const Source& source, std::size_t begin, const ShapePair& pair) {
  std::size_t at = begin + pair.first.size();
  auto saved = seek_shape(source, at);
  if (!saved) return std::nullopt;
  std::string_view window = std::string_view(source.lower).substr(at, 2 * kGap);
  std::size_t second = window.find(pair.second);
  if (second == window.npos) return std::nullopt;
  at += second + pair.second.size();
  auto current = seek_shape(source, at);
  if (!current) return std::nullopt;
  Found found{begin, at, {ErrorForm::kShapes, {}, std::move(*saved), std::move(*current)}};
  found.message.tensor = pair.named_before ? name_before(source, begin) : name_after(source, at);
  return found;
}

void find_shapes(const Source& source, std::vector<Found>& all) {
  for (const ShapePair& pair : kShapePairs) {
    std::size_t at = source.lower.find(pair.first);
    while (at != std::string::npos) {
      auto found = pair_at(source, at, pair);
      std::size_t next = found ? found->end : at + 1;
      if (found) all.push_back(std::move(*found));
      at = source.lower.find(pair.first, next);
    }
  }
}

enum class Names : std::uint8_t { kNone, kAfter, kListAfter, kFile };
struct Phrase {
  std::string_view words;  // lower case
  ErrorForm form;
  Names names = Names::kNone;
};
constexpr std::array<Phrase, 19> kPhrases = {{
    {"missing key in checkpoint state_dict:", ErrorForm::kMissingKey, Names::kAfter},
    {"missing key(s) in state_dict:", ErrorForm::kMissingKey, Names::kListAfter},
    {"unexpected key(s) in state_dict:", ErrorForm::kUnexpectedKey, Names::kListAfter},
    {"metadataindex(fqn=", ErrorForm::kNoStorageRecord, Names::kAfter},
    {"failed finding central directory", ErrorForm::kNoCentralDirectory},
    {"invalid header or archive is corrupted", ErrorForm::kBadArchive},
    {"file in archive is not in a subdirectory", ErrorForm::kBadArchive},
    {"checksum mismatch", ErrorForm::kBadArchive},
    {"no module named 'pathlib._local'", ErrorForm::kPickledByPython313},
    {"no module named \"pathlib._local\"", ErrorForm::kPickledByPython313},
    {"too many values to unpack (expected 5)", ErrorForm::kSixProperties},
    {"too many values to unpack (expected 5, got 6)", ErrorForm::kSixProperties},
    {"failed to validate global plan", ErrorForm::kPlanRefused},
    {"pickle data was truncated", ErrorForm::kPickleCut},
    {"ran out of input", ErrorForm::kPickleCut},
    {"no such file or directory:", ErrorForm::kMissingFile, Names::kFile},
    {"unsupported global: global ", ErrorForm::kUnsafeGlobal, Names::kAfter},
    {"'tensor' object has no attribute 'to_local'", ErrorForm::kStateIsNoDTensor},
    {"'parameter' object has no attribute 'to_local'", ErrorForm::kStateIsNoDTensor},
}};

// Missing key(s) in state_dict: "a", "b", "c".
void find_list(const Source& source, std::size_t at, ErrorForm form, std::vector<Found>& all) {
  std::size_t begin = at;
  for (;;) {
    skip_spaces(source.text, at);
    if (!starts_at(source.text, at, "\"") && !starts_at(source.text, at, "'")) return;
    std::size_t end = source.text.find(source.text[at], at + 1);
    if (end == std::string::npos || end - at > kMaxName || all.size() > 4 * kMaxMessages) return;
    all.push_back({begin, end, {form, source.text.substr(at + 1, end - at - 1), {}, {}}});
    at = end + 1;
    if (!starts_at(source.text, at, ",")) return;
    ++at;
  }
}

// Only files of a checkpoint: other missing files have nothing to do with it.
bool is_checkpoint_file(std::string_view path) {
  return path.ends_with(".distcp") || path.ends_with(".metadata") || path.ends_with(".safetensors");
}

void find_phrases(const Source& source, std::vector<Found>& all) {
  for (const Phrase& phrase : kPhrases) {
    for (std::size_t at = source.lower.find(phrase.words); at != std::string::npos;
         at = source.lower.find(phrase.words, at + 1)) {
      std::size_t end = at + phrase.words.size();
      if (phrase.names == Names::kListAfter) {
        find_list(source, end, phrase.form, all);
        continue;
      }
      Found found{at, end, {phrase.form, {}, {}, {}}};
      if (phrase.names != Names::kNone) found.message.tensor = read_name(source.text, end);
      if (phrase.names == Names::kFile && !is_checkpoint_file(found.message.tensor)) continue;
      all.push_back(std::move(found));
    }
  }
}

}  // namespace

std::string_view name(ErrorForm form) {
  switch (form) {
    case ErrorForm::kShapes:
      return "shapes";
    case ErrorForm::kMissingKey:
      return "missing-key";
    case ErrorForm::kUnexpectedKey:
      return "unexpected-key";
    case ErrorForm::kNoStorageRecord:
      return "no-storage-record";
    case ErrorForm::kNoCentralDirectory:
      return "no-central-directory";
    case ErrorForm::kBadArchive:
      return "bad-archive";
    case ErrorForm::kPickledByPython313:
      return "pickled-by-python-3.13";
    case ErrorForm::kSixProperties:
      return "six-properties";
    case ErrorForm::kPlanRefused:
      return "plan-refused";
    case ErrorForm::kPickleCut:
      return "pickle-cut";
    case ErrorForm::kMissingFile:
      return "missing-file";
    case ErrorForm::kUnsafeGlobal:
      return "unsafe-global";
    case ErrorForm::kStateIsNoDTensor:
      break;
  }
  return "state-is-no-dtensor";
}

ErrorText parse_error_text(std::string_view text) {
  ErrorText result;
  if (text.size() > kMaxErrorText) {
    text.remove_prefix(text.size() - kMaxErrorText);  // a traceback says at its end what it is
    result.cut = true;
  }
  Source source{flattened(text), {}};
  source.lower.resize(source.text.size());
  std::transform(source.text.begin(), source.text.end(), source.lower.begin(), lower);
  std::vector<Found> all;
  find_shapes(source, all);
  find_phrases(source, all);
  std::stable_sort(all.begin(), all.end(),
                   [](const Found& a, const Found& b) { return a.begin < b.begin; });
  std::size_t end = 0;
  for (Found& found : all) {
    // "saved" of one pair inside another pair's words: the first that began has it.
    bool inside = found.message.form == ErrorForm::kShapes && found.begin < end;
    if (found.message.form == ErrorForm::kShapes) end = std::max(end, found.end);
    if (inside) continue;
    auto same = std::find(result.messages.begin(), result.messages.end(), found.message);
    if (same != result.messages.end()) continue;  // every rank says the same
    if (result.messages.size() == kMaxMessages) {
      ++result.left_out;
      continue;
    }
    result.messages.push_back(std::move(found.message));
  }
  return result;
}

std::vector<std::string> understood_forms() {
  return {
      "Size mismatch between saved torch.Size([64]) and current: torch.Size([128]) for NAME",
      "Global shape mismatch for loaded (64,) and expected (128,) tensor for key NAME",
      "size mismatch for NAME: copying a param with shape torch.Size([64]) from checkpoint, the "
      "shape in current model is torch.Size([128])",
      "NAME: found shape torch.Size([64]) in the checkpoint and torch.Size([128]) in the model",
      "saved [64] current [128] for NAME",
      "Missing key in checkpoint state_dict: NAME",
      "Missing key(s) in state_dict: \"NAME\", ...   Unexpected key(s) in state_dict: ...",
      "KeyError: MetadataIndex(fqn='NAME', ...)",
      "Failed to validate global plan",
      "failed finding central directory   invalid header or archive is corrupted",
      "pickle data was truncated   Ran out of input",
      "No module named 'pathlib._local'   too many values to unpack (expected 5)",
      "No such file or directory: '.../__3_0.distcp'",
      "Unsupported global: GLOBAL name   'Tensor' object has no attribute 'to_local'",
  };
}

}  // namespace shw
